#include "evaluation/judge/oracle.hpp"

#include <algorithm>

#include "messages/ids.hpp"

namespace hone {
namespace {

// More runs than a study has: host memory is no limit.
constexpr std::size_t any_number = 100;

}  // namespace

const tensor_spec& tensor_of(const task& t, std::size_t tensor) {
  return tensor < t.inputs.size() ? t.inputs[tensor] : t.parameters[tensor - t.inputs.size()];
}

bool has_narrow(const std::vector<tensor_layout>& layouts) {
  return std::any_of(layouts.begin(), layouts.end(), [](const tensor_layout& l) {
    return is_floating(l.type) && l.type != dtype::float64;
  });
}

bool stands_for(const std::vector<tensor_layout>& wide, const std::vector<tensor_layout>& own) {
  return std::equal(wide.begin(), wide.end(), own.begin(), own.end(),
                    [](const tensor_layout& a, const tensor_layout& b) {
                      return a.shape == b.shape && is_floating(a.type) == is_floating(b.type);
                    });
}

void check_expression(const tensor_spec& spec, const std::vector<tensor_layout>& outputs,
                      const tensor_layout& raw) {
  if (outputs.size() == 1 && outputs[0].shape == raw.shape) return;
  throw reference_error(Outcome::WRONG_RESULT,
                        spec.name + ": expr gives " +
                            (outputs.empty() ? "nothing" : print_layout(outputs[0])) +
                            ", expected the shape of " + print_layout(raw));
}

std::vector<program_source> reference_oracle::programs(const task& t) {
  std::vector<program_source> sources = {{t.reference, t.inputs.size(), t.parameters.size()}};
  for (std::size_t i = 0; i < t.inputs.size() + t.parameters.size(); ++i) {
    const std::string& expr = tensor_of(t, i).init.expr;
    if (!expr.empty())
      sources.push_back({"def forward(x: Tensor) -> Tensor:\n    return " + expr + "\n", 1, 0});
  }
  return sources;
}

std::vector<std::size_t> reference_oracle::program_numbers(const task& t) {
  std::vector<std::size_t> numbers;
  std::size_t next = 1;
  for (std::size_t i = 0; i < t.inputs.size() + t.parameters.size(); ++i)
    numbers.push_back(tensor_of(t, i).init.expr.empty() ? 0 : next++);
  return numbers;
}

reference_oracle::reference_oracle(const task& t, std::unique_ptr<program_session> session)
    : task_(&t), session_(std::move(session)), program_of_(program_numbers(t)) {}

void reference_oracle::arrange(std::size_t program, const value_set& inputs,
                               const value_set& parameters) {
  try {
    session_->arrange(program, layouts_of(inputs), layouts_of(parameters), 1);
  } catch (const std::length_error& e) {
    throw reference_error(Outcome::INFRASTRUCTURE, e.what());
  }
  session_->write_inputs(0, inputs);
  session_->write_parameters(parameters);
}

value_set reference_oracle::call(std::size_t program, const value_set& inputs,
                                 const value_set& parameters) {
  arrange(program, inputs, parameters);
  const std::size_t set = 0;
  const auto ran =
      session_->run({&set, 1}, std::chrono::steady_clock::now() + reference_call_limit);
  if (!ran) throw reference_error(ran.error().outcome, ran.error().message);
  auto outputs = session_->outputs(0);
  if (!outputs) throw reference_error(outputs.error().outcome, outputs.error().message);
  return *std::move(outputs);
}

tensor_value reference_oracle::realize(std::size_t tensor, const tensor_value& raw) {
  const tensor_spec& spec = tensor_of(*task_, tensor);
  tensor_value value = raw;
  if (program_of_[tensor] != 0) {
    value_set outputs = call(program_of_[tensor], {raw}, {});
    check_expression(spec, layouts_of(outputs), raw.layout);
    value = std::move(outputs[0]);
  }
  return with_type(std::move(value), spec.type);
}

bool reference_oracle::study(reference_study study, distribution how, expected_outputs& to) {
  complete(study, *task_, how, random_bits());
  const auto deadline = std::chrono::steady_clock::now() +
                        reference_call_limit * static_cast<int>(study.plan.runs.size());
  const auto decisions = session_->study(study.plan, deadline);
  if (!decisions) throw reference_error(decisions.error().outcome, decisions.error().message);
  const auto outputs_of = [&](std::size_t run) {
    auto outputs = session_->outputs(run);
    if (!outputs) throw reference_error(outputs.error().outcome, outputs.error().message);
    return *std::move(outputs);
  };
  for (std::size_t i = 0; i < study.noisy; ++i)
    to.noisy.push_back(outputs_of(study.first_noisy + i));
  for (std::size_t i = 0; i < study.alternatives; ++i)
    to.alternatives.push_back(outputs_of(study.first_alternative + i));
  if (study.wide) to.wide = outputs_of(*study.wide);
  if (to.wide && !stands_for(layouts_of(*to.wide), layouts_of(to.own)))
    throw reference_error(Outcome::CRASH, "its outputs in float64 are others");
  if (study.settled) to.settled = outputs_of(*study.settled);
  return *decisions > 0;
}

expected_outputs reference_oracle::expect(const value_set& inputs, const value_set& parameters,
                                          evidence wanted, distribution how) {
  expected_outputs own;
  own.how = how;
  own.own = call(0, inputs, parameters);
  aliases_ = session_->aliases(0);
  row_major_outputs_ = session_->row_major_outputs(0);
  std::string layouts;
  for (const tensor_layout& layout : layouts_of(inputs)) layouts += print_layout(layout) + ' ';
  facts_ = &facts_of_case_[layouts];
  for (std::size_t i = 0; i < own.own.size(); ++i)
    own.known_errors.push_back(facts_->typical_error(how, i));
  if (wanted == evidence::own_types) return own;
  expected_outputs expected = own;
  const bool is_narrow = has_narrow(layouts_of(inputs)) || has_narrow(layouts_of(parameters));
  expected.takes_decisions = facts_->gather(
      wanted, is_narrow, any_number,
      [&](const reference_study& one) { return study(one, how, expected); },
      [&] {
        expected = own;
        arrange(0, inputs, parameters);
      });
  session_->discard_outputs();
  return expected;
}

agreement reference_oracle::compare(const value_set& actual, const expected_outputs& expected) {
  agreement agreed = compare_outputs(actual, expected, *task_);
  if (!expected.noisy.empty()) facts_->learn(expected.how, agreed);
  facts_->possible().complete(agreed);
  return agreed;
}

}  // namespace hone
