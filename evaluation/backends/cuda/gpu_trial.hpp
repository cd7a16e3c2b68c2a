#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/backends/cuda/gpu_task.hpp"
#include "evaluation/judge/verification.hpp"

namespace hone {

// A finished call of a session on a GPU, to be compared with the expected outputs for the current
// contents of its task. The task and the session must outlive it.
class gpu_call final : public finished_call {
 public:
  gpu_call(gpu_task& of, gpu_session& session, std::size_t call, std::size_t set)
      : task_(&of), session_(&session), call_(call), set_(set) {}

  std::optional<std::string> memory_damage() override { return session_->memory_damage(); }
  bool inputs_hold() override { return session_->inputs_hold(set_, task_->inputs()); }
  bool parameters_hold() override { return session_->parameters_hold(task_->parameters()); }
  std::set<output_alias> aliases() override { return session_->aliases(call_); }
  program_result<agreement> compare() override;
  bool reference_takes_decisions() override { return task_->takes_decisions(); }

 private:
  gpu_task* task_;
  gpu_session* session_;
  std::size_t call_;
  std::size_t set_;
};

// A trial of a candidate on a GPU. The task and the session must outlive it. `usable`: see
// trial::usable_distributions(); is called after arrange() and may replace the task's contents.
class gpu_trial final : public trial {
 public:
  using distributions = std::function<std::vector<distribution>()>;
  gpu_trial(gpu_task& of, gpu_session& candidate, distributions usable, bool is_module = false)
      : task_(&of), candidate_(&candidate), usable_(std::move(usable)), is_module_(is_module) {}

  const task& of() const override { return task_->of(); }
  void arrange(const task_case& at) override;
  std::vector<distribution> usable_distributions() override { return usable_(); }
  void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) override;
  void perturb(std::size_t set, std::uint64_t perturbation) override;
  void redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) override;
  program_result<void> call(std::size_t set, std::chrono::milliseconds limit, time_budget& budget,
                            worst_errors& totals) override;

 private:
  void expect();

  gpu_task* task_;
  gpu_session* candidate_;
  distributions usable_;
  bool is_module_;
  int instances_ = 0;  // of a Python module, in this case
  evidence_plan evidence_;
  distribution how_ = distribution::declared;  // of the round
  std::uint64_t seed_ = 0;
  bool parameters_changed_ = false;
};

}  // namespace hone
