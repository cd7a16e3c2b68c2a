#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/verification.hpp"

namespace hone {

// A finished call of a session in host memory, with the values that were written to its arguments
// and the outputs that are expected of it. Everything passed by reference must outlive it.
class host_call final : public finished_call {
 public:
  host_call(program_session& session, std::size_t call, std::size_t set, const value_set& inputs,
            const value_set& parameters, const expected_outputs& expected, reference_oracle& oracle)
      : session_(&session),
        call_(call),
        set_(set),
        inputs_(&inputs),
        parameters_(&parameters),
        expected_(&expected),
        oracle_(&oracle) {}

  std::optional<std::string> memory_damage() override { return session_->memory_damage(); }
  bool inputs_hold() override { return session_->inputs_hold(set_, *inputs_); }
  bool parameters_hold() override { return session_->parameters_hold(*parameters_); }
  std::set<output_alias> aliases() override { return session_->aliases(call_); }
  program_result<agreement> compare() override;
  bool reference_takes_decisions() override { return expected_->takes_decisions; }

 private:
  program_session* session_;
  std::size_t call_;
  std::size_t set_;
  const value_set* inputs_;
  const value_set* parameters_;
  const expected_outputs* expected_;
  reference_oracle* oracle_;
};

// A trial of a candidate whose tensors lie in host memory. The session and the oracle must outlive
// it.
class host_trial : public trial {
 public:
  // `usable`: the distributions that checks of each case may use, by case. `constructor`: draws the
  // parameters of a Python module; null for other programs.
  using distributions_of_case = std::function<std::vector<distribution>(const task_case&)>;
  host_trial(program_session& candidate, reference_oracle& oracle, distributions_of_case usable,
             parameter_source* constructor = nullptr)
      : candidate_(&candidate),
        oracle_(&oracle),
        usable_of_(std::move(usable)),
        constructor_(constructor) {}

  const task& of() const override { return oracle_->of(); }
  void arrange(const task_case& at) override;
  std::vector<distribution> usable_distributions() override { return usable_; }
  void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) override;
  void perturb(std::size_t set, std::uint64_t perturbation) override;
  void redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) override;
  program_result<void> call(std::size_t set, std::chrono::milliseconds limit, time_budget& budget,
                            worst_errors& totals) override;

 private:
  void expect();
  void expect(evidence wanted);

  program_session* candidate_;
  reference_oracle* oracle_;
  distributions_of_case usable_of_;
  parameter_source* constructor_;
  std::vector<distribution> usable_;
  evidence_plan evidence_;
  std::optional<input_recipe> recipe_;
  distribution how_ = distribution::declared;    // of the round
  distribution drawn_ = distribution::declared;  // of the current inputs
  std::uint64_t seed_ = 0;
  std::uint64_t parameters_seed_ = 0;
  int instances_ = 0;  // of a Python module, in this case
  value_set inputs_;
  value_set parameters_;
  expected_outputs expected_;
};

}  // namespace hone
