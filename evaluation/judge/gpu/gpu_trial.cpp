#include "evaluation/judge/gpu/gpu_trial.hpp"

namespace hone {

void gpu_trial::arrange(const task_case& at) {
  task_->choose(at);
  candidate_->arrange(0, task_->inputs().layouts, task_->parameters().layouts, 2);
}

void gpu_trial::draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) {
  how_ = how;
  seed_ = inputs_seed;
  task_->draw_parameters(parameters_seed);
  task_->draw_inputs(how, inputs_seed);
  task_->expect();
  candidate_->write_parameters(task_->parameters());
  parameters_changed_ = true;
}

void gpu_trial::twist(std::size_t set, std::uint64_t twist) {
  task_->draw_inputs(how_, seed_, twist);
  task_->expect();
  candidate_->write_inputs(set, task_->inputs());
}

void gpu_trial::hide_outlier(std::size_t set, std::uint64_t inputs_seed, bool mirrored) {
  task_->draw_inputs_with_an_outlier(inputs_seed, mirrored);
  task_->expect();
  candidate_->write_inputs(set, task_->inputs());
}

program_failure gpu_trial::call(std::size_t set, time_point until, verification_result& totals) {
  if (parameters_changed_) {
    parameters_changed_ = false;
    if (auto failed = candidate_->prepare(until)) return *failed;
    for (std::size_t s = 0; s < 2; ++s)
      candidate_->write_inputs(s, task_->inputs());  // prepare() has not seen them
  }
  if (auto failed = candidate_->run({&set, 1}, until)) return *failed;
  return check_gpu_call(*task_, *candidate_, 0, set, totals);
}

program_failure check_gpu_call(gpu_task& of, gpu_session& candidate, std::size_t call,
                               std::size_t set, verification_result& totals) {
  if (const auto damage = candidate.memory_damage())
    return {Outcome::CHEATING, "memory_fault", *damage};
  if (!candidate.inputs_hold(set, of.inputs()))
    return {Outcome::CHEATING, "input_mutation", "an input was changed"};
  if (!candidate.parameters_hold(of.parameters()))
    return {Outcome::CHEATING, "input_mutation", "a parameter was changed"};
  if (auto forbidden = find_forbidden_alias(candidate.aliases(call), of.aliases(), of.of()))
    return *forbidden;
  const auto outputs = candidate.outputs(call);
  if (const auto* failed = std::get_if<program_failure>(&outputs)) return *failed;
  return judge_outputs(of.compare(std::get<std::vector<gpu_output>>(outputs)), totals);
}

}  // namespace hone
