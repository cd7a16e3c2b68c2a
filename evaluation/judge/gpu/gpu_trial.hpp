#pragma once

#include "evaluation/judge/gpu/gpu_task.hpp"
#include "evaluation/judge/verification.hpp"

namespace hone {

// A candidate's session on a GPU against the task that it was written for.
class gpu_trial final : public trial {
 public:
  gpu_trial(gpu_task& of, gpu_session& candidate) : task_(&of), candidate_(&candidate) {}

  const task& of() const override { return task_->of(); }
  void arrange(const task_case& at) override;
  void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) override;
  void twist(std::size_t set, std::uint64_t twist) override;
  void hide_outlier(std::size_t set, std::uint64_t inputs_seed, bool mirrored) override;
  program_failure call(std::size_t set, time_point until, verification_result& totals) override;

 private:
  gpu_task* task_;
  gpu_session* candidate_;
  distribution how_ = distribution::declared;
  std::uint64_t seed_ = 0;
  bool parameters_changed_ = false;
};

// One finished call held against what is expected of the current contents: memory, inputs, aliases,
// then values.
program_failure check_gpu_call(gpu_task& of, gpu_session& candidate, std::size_t call,
                               std::size_t set, verification_result& totals);

}  // namespace hone
