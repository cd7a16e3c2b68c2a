#pragma once

#include "actors/activity.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Asks its device how fast artifacts are: pulls jobs of the device's type and closes them at the
// pool. A surprising score goes back into the queue with its first measurement, to be confirmed.
// One a device.
struct benchmarker_state {
  benchmarker_state() = default;

  benchmark_worker::stateful_pointer<benchmarker_state> self = nullptr;
  device_actor device;
  benchmark_queue source;
  pool_actor pool;
  std::chrono::seconds job_limit{300};
  activity counts{"", "benchmarker"};
  std::size_t working_on = 0;

  void measure(const benchmark_job& job);
  void conclude(const benchmark_job& job, const measurement_record& measurement);
  void finish(const benchmark_job& job);
};

// `device_name` lets the queue send a confirmation elsewhere.
benchmark_worker::behavior_type benchmarker(
    benchmark_worker::stateful_pointer<benchmarker_state> self, std::string name,
    std::string device_type, std::string device_name, device_actor device, benchmark_queue source,
    pool_actor pool, std::uint32_t credits, std::chrono::seconds job_limit);

}  // namespace hone
