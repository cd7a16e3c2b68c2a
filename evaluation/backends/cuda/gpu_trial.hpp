#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

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

 private:
  gpu_task* task_;
  gpu_session* session_;
  std::size_t call_;
  std::size_t set_;
};

// A trial of a candidate on a GPU. The task and the session must outlive it. `bears_large`: see
// trial::bears_large_inputs(); is called after arrange() and may replace the task's contents.
class gpu_trial final : public trial {
 public:
  gpu_trial(gpu_task& of, gpu_session& candidate, std::function<bool()> bears_large)
      : task_(&of), candidate_(&candidate), bears_large_(std::move(bears_large)) {}

  const task& of() const override { return task_->of(); }
  void arrange(const task_case& at) override;
  bool is_reference_slow() override { return exactness_.is_reference_slow(); }
  bool bears_large_inputs() override { return bears_large_(); }
  void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) override;
  void perturb(std::size_t set, std::uint64_t perturbation) override;
  void redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) override;
  program_result<void> call(std::size_t set, time_point deadline, worst_errors& totals) override;

 private:
  void expect();

  gpu_task* task_;
  gpu_session* candidate_;
  std::function<bool()> bears_large_;
  exactness_plan exactness_;
  distribution how_ = distribution::declared;    // of the round
  distribution drawn_ = distribution::declared;  // of the current inputs
  std::uint64_t seed_ = 0;
  bool parameters_changed_ = false;
};

}  // namespace hone
