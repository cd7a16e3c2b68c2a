#include "evaluation/backends/cuda/gpu_trial.hpp"

namespace hone {

program_result<agreement> gpu_call::compare() {
  const auto outputs = session_->outputs(call_);
  if (!outputs) return failed(outputs.error());
  return task_->compare(*outputs);
}

void gpu_trial::arrange(const task_case& at) {
  task_->choose(at);
  evidence_ = {};
  instances_ = 0;
  candidate_->arrange(0, task_->inputs().layouts, task_->parameters().layouts, 2);
}

void gpu_trial::expect() {
  evidence_.begin(task_->drawn(), [this](evidence wanted) { task_->expect(wanted); });
}

void gpu_trial::draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) {
  how_ = how;
  seed_ = inputs_seed;
  const bool has_new_parameters = !is_module_ || instances_++ < instances_of_a_case;
  if (has_new_parameters) task_->draw_parameters(how, parameters_seed);
  task_->draw_inputs(how, inputs_seed);
  expect();
  if (has_new_parameters) candidate_->write_parameters(task_->parameters(), parameters_seed);
  parameters_changed_ = true;
}

void gpu_trial::perturb(std::size_t set, std::uint64_t perturbation) {
  task_->draw_inputs(how_, seed_, perturbation);
  expect();
  candidate_->write_inputs(set, task_->inputs());
}

void gpu_trial::redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) {
  task_->draw_inputs(how, inputs_seed);
  expect();
  candidate_->write_inputs(set, task_->inputs());
}

program_result<void> gpu_trial::call(std::size_t set, std::chrono::milliseconds limit,
                                     time_budget& budget, worst_errors& totals) {
  if (std::exchange(parameters_changed_, false)) {
    auto prepared = budget.for_candidate(
        limit, [&](time_point deadline) { return candidate_->prepare(deadline); });
    if (!prepared) return prepared;
    // Inputs are written only now, so that prepare() could not read them.
    for (std::size_t s = 0; s < 2; ++s) candidate_->write_inputs(s, task_->inputs());
  }
  candidate_->require_row_major(task_->row_major_outputs());
  auto ran = budget.for_candidate(limit, [&](time_point deadline) {
    return candidate_->run({&set, 1}, deadline);
  });
  if (!ran) return ran;
  return evidence_.judge(
      totals, [this](evidence wanted) { task_->gather(wanted); },
      [&](worst_errors& errors) {
        gpu_call finished(*task_, *candidate_, 0, set);
        return check_call(finished, task_->aliases(), of(), errors);
      });
}

}  // namespace hone
