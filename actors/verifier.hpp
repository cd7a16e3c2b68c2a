#pragma once

#include "actors/activity.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Asks its device whether artifacts are right: pulls jobs of the device's type, hands good ones to
// the benchmark stage, the others to the pool. One a device.
struct verifier_state {
  verifier_state() = default;

  verify_worker::stateful_pointer<verifier_state> self = nullptr;
  device_actor device;
  verify_queue source;
  benchmark_queue benchmarks;
  pool_actor pool;
  std::chrono::seconds job_limit{300};
  activity counts{"", "verifier"};
  std::size_t working_on = 0;

  void verify(const verify_job& job);
  void hand_on(const verify_job& job, const verdict_record& verdict);
  void finish(const verify_job& job);
};

verify_worker::behavior_type verifier(verify_worker::stateful_pointer<verifier_state> self,
                                      std::string name, std::string device_type,
                                      device_actor device, verify_queue source,
                                      benchmark_queue benchmarks, pool_actor pool,
                                      std::uint32_t credits, std::chrono::seconds job_limit);

}  // namespace hone
