#include "evaluation/judge/host_trial.hpp"

namespace hone {

program_result<agreement> host_call::compare() {
  const auto outputs = session_->outputs(call_);
  if (!outputs) return failed(outputs.error());
  return oracle_->compare(*outputs, *expected_);
}

void host_trial::arrange(const task_case& at) {
  usable_ = usable_of_(at);
  instances_ = 0;
  evidence_ = {};
  recipe_.emplace(*oracle_, at, constructor_);
  candidate_->arrange(0, recipe_->input_layouts(), recipe_->parameter_layouts(), 2);
}

void host_trial::expect(evidence wanted) {
  expected_ = oracle_->expect(inputs_, parameters_, wanted, drawn_);
}

void host_trial::expect() {
  evidence_.begin(drawn_, [this](evidence wanted) { expect(wanted); });
}

void host_trial::draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) {
  how_ = drawn_ = how;
  seed_ = inputs_seed;
  if (constructor_ == nullptr || instances_++ < instances_of_a_case) {
    parameters_seed_ = parameters_seed;
    parameters_ = recipe_->draw_parameters(how, parameters_seed);
  }
  inputs_ = recipe_->draw_inputs(how, inputs_seed);
  expect();
  candidate_->write_parameters(parameters_, parameters_seed_);
  for (std::size_t set = 0; set < 2; ++set) candidate_->write_inputs(set, inputs_);
}

void host_trial::perturb(std::size_t set, std::uint64_t perturbation) {
  drawn_ = how_;
  inputs_ = recipe_->draw_inputs(how_, seed_, perturbation);
  expect();
  candidate_->write_inputs(set, inputs_);
}

void host_trial::redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) {
  drawn_ = how;
  inputs_ = recipe_->draw_inputs(how, inputs_seed);
  expect();
  candidate_->write_inputs(set, inputs_);
}

program_result<void> host_trial::call(std::size_t set, std::chrono::milliseconds limit,
                                      time_budget& budget, worst_errors& totals) {
  candidate_->require_row_major(oracle_->row_major_outputs());
  const auto ran = budget.for_candidate(limit, [&](time_point deadline) {
    return candidate_->run({&set, 1}, deadline);
  });
  if (!ran) return failed(ran.error());
  return evidence_.judge(
      totals, [this](evidence wanted) { expect(wanted); },
      [&](worst_errors& errors) {
        host_call finished(*candidate_, 0, set, inputs_, parameters_, expected_, *oracle_);
        return check_call(finished, oracle_->aliases(), of(), errors);
      });
}

}  // namespace hone
