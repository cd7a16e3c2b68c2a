#pragma once

#include <string>

#include "actors/activity.hpp"
#include "actors/wiring.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Requests measurements of verified artifacts from its device: takes jobs of the device's type from
// the benchmark queue and sends the results to the pool. A job with a surprisingly good score
// returns to the queue with this measurement, so that another measurement confirms it. Each device
// has one benchmarker, which ends when the device ends.
struct benchmarker_state {
  benchmarker_state() = default;

  benchmarker_actor::stateful_pointer<benchmarker_state> self = nullptr;
  device_actor device;
  node_wiring wiring;
  std::chrono::seconds job_limit{};  // time limit of a request to the device
  activity counts{"", "benchmarker"};
  std::size_t in_flight = 0;
  bool is_leaving = false;  // ends when it has no job any more

  void measure(const benchmark_job& job);
  void conclude(const benchmark_job& job, const measurement_record& measurement);
  void finish(const benchmark_job& job);
  void leave();
};

// `of` describes the device behind `device`. Its name lets the queue send a confirmation to
// another device of the same type.
benchmarker_actor::behavior_type benchmarker_behavior(
    benchmarker_actor::stateful_pointer<benchmarker_state> self, const std::string& node,
    const planned_device& of, device_actor device, node_wiring wiring);

}  // namespace hone
