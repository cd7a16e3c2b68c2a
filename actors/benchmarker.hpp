#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/wiring.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Requests measurements of verified artifacts from its device, for the device's verifier. A job
// with a surprisingly good score goes to the benchmark queue with this measurement, so that another
// one confirms it: the benchmarker takes such jobs of the device's type from the queue. Each device
// has one benchmarker, which ends when the device ends.
struct benchmarker_state {
  benchmarker_state() = default;

  benchmarker_actor::stateful_pointer<benchmarker_state> self = nullptr;
  device_actor device;
  node_wiring wiring;
  caf::duration job_limit = caf::infinite;  // of a request to the device
  activity counts{"", "benchmarker"};
  std::size_t in_flight = 0;
  bool is_leaving = false;   // ends when it has no job any more
  bool has_verifier = true;  // false: it has left

  // The evaluation that ended a job; none: the job waits for another device.
  using evaluations = std::vector<evaluation_record>;

  // Measures, and tells `end` how the job ended.
  void measure(const benchmark_job& job, const std::function<void(const evaluations&)>& end);
  evaluations conclude(const benchmark_job& job, const measurement_record& measurement);
  // Takes no more confirmations, but measures for the verifier as long as that lives.
  void leave();
  void end_if_left();
};

// `of` describes the device behind `device`. Its name lets the queue send a confirmation to
// another device of the same type.
benchmarker_actor::behavior_type benchmarker_behavior(
    benchmarker_actor::stateful_pointer<benchmarker_state> self, const std::string& node,
    const planned_device& of, device_actor device, node_wiring wiring);

}  // namespace hone
