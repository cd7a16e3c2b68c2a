#pragma once

#include <string>

#include "actors/activity.hpp"
#include "actors/wiring.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Requests verdicts on artifacts from its device: takes jobs of the device's type from the verify
// queue, and has what passed measured by the device's benchmarker, so that a job crosses the
// network once. A job stays one of the verify queue until it has been measured. Each device has one
// verifier, which ends when the device ends.
struct verifier_state {
  verifier_state() = default;

  verifier_actor::stateful_pointer<verifier_state> self = nullptr;
  device_actor device;
  benchmarker_actor benchmarker;
  node_wiring wiring;
  caf::duration job_limit = caf::infinite;  // of a request to the device
  activity counts{"", "verifier"};
  std::size_t in_flight = 0;
  bool is_leaving = false;  // ends when it has no job any more

  void verify(const verify_job& job);
  void take_verdict(const verify_job& job, const verdict_record& verdict);
  // Ends a job with its evaluation.
  void close(const evaluation_record& evaluation);
  // Returns the credit of a job that waits in the benchmark queue to be confirmed.
  void release(const verify_job& job);
  // Ends the verifier if it is leaving and has no job any more.
  void end_if_left();
  void leave();
};

// `of` describes the device behind `device`. The verifier is linked to the device's benchmarker:
// none of the two works without the other.
verifier_actor::behavior_type verifier_behavior(
    verifier_actor::stateful_pointer<verifier_state> self, std::string name,
    const planned_device& of, device_actor device, benchmarker_actor benchmarker,
    node_wiring wiring);

}  // namespace hone
