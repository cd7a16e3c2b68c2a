#include "evaluation/judge/call_checks.hpp"

#include <algorithm>

namespace hone {
namespace {

// Describes an alias: "output 0 lies in the memory of the input A".
std::string describe_alias(const output_alias& shared, const task& t) {
  using with = output_alias::with;
  std::string output = "output " + std::to_string(shared.output);
  switch (shared.what) {
    case with::input:
      return output + " lies in the memory of the input " + t.inputs.at(shared.index).name;
    case with::parameter:
      return output + " lies in the memory of the parameter " + t.parameters.at(shared.index).name;
    case with::output:
      return output + " shares memory with output " + std::to_string(shared.index);
    case with::earlier_call:
      return output + " lies in the memory of an earlier call's output";
    case with::foreign:
      return output + " lies in memory that the call did not allocate";
    case with::itself:
      return output + " has several elements in the same place";
  }
  return output;
}

}  // namespace

void worst_errors::include(const worst_errors& other) {
  worst_element = std::max(worst_element, other.worst_element);
  rms = std::max(rms, other.rms);
}

program_result<void> check_call(finished_call& call, const std::set<output_alias>& allowed_aliases,
                                const task& t, worst_errors& totals) {
  if (const auto damage = call.memory_damage()) return cheated("memory_fault", *damage);
  if (!call.inputs_hold()) return cheated("input_mutation", "an input was changed");
  if (!call.parameters_hold()) return cheated("input_mutation", "a parameter was changed");
  for (const output_alias& shared : call.aliases()) {
    if (!allowed_aliases.contains(shared))
      return cheated("output_alias", describe_alias(shared, t));
  }
  const auto agreed = call.compare();
  if (!agreed) return failed(agreed.error());
  totals.include({agreed->worst_element, agreed->rms});
  totals.is_malformed = agreed->is_malformed;
  totals.may_be_decisions = call.reference_takes_decisions();
  if (!agreed->problem) return {};
  return failed(Outcome::WRONG_RESULT, *agreed->problem);
}

bool writes_outputs(const std::set<output_alias>& aliases) {
  using with = output_alias::with;
  return std::all_of(aliases.begin(), aliases.end(), [](const output_alias& shared) {
    return shared.what == with::output || shared.what == with::itself;
  });
}

}  // namespace hone
