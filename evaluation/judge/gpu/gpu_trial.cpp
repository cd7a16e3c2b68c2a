#include "evaluation/judge/gpu/gpu_trial.hpp"

namespace hone {

void gpu_trial::arrange(const task_case& at) {
  right_->choose(at);
  candidate_->arrange(0, right_->inputs().layouts, right_->parameters().layouts, 2);
}

void gpu_trial::write_inputs(std::size_t set) {
  const gpu_tensors& inputs = right_->inputs();
  for (std::size_t i = 0; i < inputs.layouts.size(); ++i) gpu_->copy(candidate_->input(set, i), inputs.memory[i].at(), inputs.layouts[i].bytes());
}

void gpu_trial::draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) {
  how_ = how;
  seed_ = inputs_seed;
  right_->draw_parameters(parameters_seed);
  right_->draw_inputs(how, inputs_seed);
  right_->expect();
  const gpu_tensors& parameters = right_->parameters();
  for (std::size_t i = 0; i < parameters.layouts.size(); ++i) gpu_->copy(candidate_->parameter(i), parameters.memory[i].at(), parameters.layouts[i].bytes());
  parameters_changed_ = true;
}

void gpu_trial::twist(std::size_t set, std::uint64_t twist) {
  right_->draw_inputs(how_, seed_, twist);
  right_->expect();
  write_inputs(set);
}

void gpu_trial::hide_outlier(std::size_t set, std::uint64_t inputs_seed, bool mirrored) {
  right_->draw_inputs_with_an_outlier(inputs_seed, mirrored);
  right_->expect();
  write_inputs(set);
}

program_failure gpu_trial::call(std::size_t set, time_point until, verification_result& totals) {
  if (parameters_changed_) {
    parameters_changed_ = false;
    if (auto failed = candidate_->prepare(until)) return *failed;
    for (std::size_t s = 0; s < 2; ++s) write_inputs(s);  // prepare() has not seen them
  }
  if (auto failed = candidate_->run({&set, 1}, until)) return *failed;
  return check_gpu_call(*gpu_, *right_, *candidate_, 0, set, totals);
}

program_failure check_gpu_call(judge_gpu& gpu, gpu_task& right, gpu_session& candidate, std::size_t call, std::size_t set, verification_result& totals) {
  if (const auto damage = candidate.memory_damage()) return {Outcome::CHEATING, "memory_fault", *damage};
  const auto holds = [&](const gpu_tensors& tensors, const auto& place) {
    for (std::size_t i = 0; i < tensors.layouts.size(); ++i) {
      if (!gpu.equal(place(i), tensors.memory[i].at(), tensors.layouts[i].bytes())) return false;
    }
    return true;
  };
  if (!holds(right.inputs(), [&](std::size_t i) { return candidate.input(set, i); })) return {Outcome::CHEATING, "input_mutation", "an input was changed"};
  if (!holds(right.parameters(), [&](std::size_t i) { return candidate.parameter(i); })) return {Outcome::CHEATING, "input_mutation", "a parameter was changed"};
  if (auto forbidden = find_forbidden_alias(candidate.aliases(call), right.aliases(), right.of())) return *forbidden;
  const auto outputs = candidate.outputs(call);
  if (const auto* failed = std::get_if<program_failure>(&outputs)) return *failed;
  return judge_outputs(right.compare(std::get<std::vector<gpu_output>>(outputs)), totals);
}

}  // namespace hone
