#include "messages/names.hpp"

#include <array>

#include "messages/value_names.hpp"

namespace hone {
namespace {

constexpr std::array<std::string_view, outcome_count> outcome_names = {
    "ok",      "unparsable",   "rejected", "compile_error", "launch_error",  "crash",
    "timeout", "wrong_result", "cheating", "unstable",      "infrastructure"};

}  // namespace

std::string_view name_of(Outcome outcome) {
  return outcome_names.at(static_cast<std::size_t>(outcome));
}

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::SFT:
      return "sft";
    case Stage::SELF_SUPERVISED:
      return "self_supervised";
    case Stage::CONTRASTIVE:
      return "contrastive";
    case Stage::COMPARISON:
      return "comparison";
    case Stage::VALIDATION:
      return "validation";
    case Stage::SERVICE:
      return "service";
  }
  return "unknown";
}

std::string_view name_of(schema::RolloutGroup::Origin origin) {
  switch (origin) {
    case schema::RolloutGroup::Origin::POLICY:
      return "policy";
    case schema::RolloutGroup::Origin::CORPUS:
      return "corpus";
    case schema::RolloutGroup::Origin::COMPARISON:
      return "comparison";
    case schema::RolloutGroup::Origin::SERVICE:
      return "service";
  }
  return "unknown";
}

std::string_view name_of(schema::Draw::Arm arm) {
  switch (arm) {
    case schema::Draw::Arm::SAMPLED:
      return "sampled";
    case schema::Draw::Arm::BARE:
      return "bare";
    case schema::Draw::Arm::GREEDY:
      return "greedy";
  }
  return "unknown";
}

std::uint32_t scope_of(const schema::RolloutGroup::Reader& group) {
  if (group.getOrigin() == schema::RolloutGroup::Origin::COMPARISON)
    return (group.getScreened() ? screened_comparison_scope : comparison_scope) +
           scope_kinds * group.getDraw().getComparedAt();
  return group.getScreened() ? screening_scope : run_scope;
}

std::optional<Outcome> outcome_named(std::string_view name) {
  return value_named<Outcome>(outcome_names, name);
}

std::string_view device_kind_of(std::string_view device_type) {
  if (device_type.starts_with("cpu-")) return "cpu";
  return device_type.starts_with("simulated-") ? "simulated" : "cuda";
}

}  // namespace hone
