#pragma once

#include <string>

#include "actors/activity.hpp"
#include "actors/wiring.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Requests verdicts on artifacts from its device: takes jobs of the device's type from the verify
// queue, and sends an artifact that passed to the benchmark queue and every other verdict to the
// pool. Each device has one verifier, which ends when the device ends.
struct verifier_state {
  verifier_state() = default;

  verifier_actor::stateful_pointer<verifier_state> self = nullptr;
  device_actor device;
  node_wiring wiring;
  std::chrono::seconds job_limit{};  // time limit of a request to the device
  activity counts{"", "verifier"};
  std::size_t in_flight = 0;
  bool is_leaving = false;  // ends when it has no job any more

  void verify(const verify_job& job);
  void forward(const verify_job& job, const verdict_record& verdict);
  void finish(const verify_job& job);
  void leave();
};

// `of` describes the device behind `device`.
verifier_actor::behavior_type verifier_behavior(
    verifier_actor::stateful_pointer<verifier_state> self, std::string name,
    const planned_device& of, device_actor device, node_wiring wiring);

}  // namespace hone
