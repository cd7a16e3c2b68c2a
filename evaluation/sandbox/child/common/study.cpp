#include "evaluation/sandbox/child/common/study.hpp"

#include <ATen/ATen.h>

#include "evaluation/sandbox/child/common/rounding_noise.hpp"

namespace hone {
namespace {

std::vector<c10::IValue> widened(std::vector<c10::IValue> arguments) {
  for (c10::IValue& value : arguments) {
    if (value.isTensor() && value.toTensor().is_floating_point())
      value = value.toTensor().to(at::kDouble);
  }
  return arguments;
}

decision_use use_of(schema::StudyCalls::Decisions decisions) {
  switch (decisions) {
    case schema::StudyCalls::Decisions::RECORD:
      return decision_use::record;
    case schema::StudyCalls::Decisions::REPLAY:
      return decision_use::replay;
    default:
      return decision_use::ignore;
  }
}

}  // namespace

std::uint64_t study_call(schema::StudyCalls::Reader request,
                         const std::function<output_list(std::vector<c10::IValue>&)>& forward,
                         const std::vector<c10::IValue>& arguments,
                         std::vector<output_list>& outputs) {
  decision_log decisions;
  for (const auto run : request.getRuns()) {
    std::vector<c10::IValue> given = run.getWide() ? widened(arguments) : arguments;
    const rounding_noise noise{run.getAmplitude(), run.getSeed(), request.getTf32(),
                               request.getIsSparse(), request.getHasSmallInputs()};
    with_rounding_noise(noise, use_of(run.getDecisions()), decisions,
                        [&] { outputs.push_back(forward(given)); });
  }
  return decisions.size();
}

}  // namespace hone
