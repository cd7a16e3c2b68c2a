#pragma once

#include <memory>

#include "evaluation/backends/cpu/cpu_device.hpp"
#include "tests/support/evaluator.hpp"

namespace hone::testing_support {

// A CPU device and an evaluator on it, with deadlines that tests can wait for. There is one bench
// per process, since a device takes a second to warm up. If another process has reserved the core,
// the device shares cores, which does not affect verdicts.
class judging_bench {
 public:
  static judging_bench& instance() {
    static judging_bench bench;
    return bench;
  }

  device& device_under_test() { return *device_; }
  evaluator& judge() { return judge_; }
  bool shares_cores() const { return shares_cores_; }
  // True under a sanitizer, where receiving a command takes as long as a timed run.
#ifdef __SANITIZE_ADDRESS__
  static constexpr bool times_mean_nothing = true;
#else
  static constexpr bool times_mean_nothing = false;
#endif

 private:
  // Honest calls in these tests take well under 20 ms.
  static constexpr std::chrono::milliseconds call_limit{2000};
  // Honest blocks compile in 0.3 s, or in 1.5 s on a busy machine.
  static constexpr std::chrono::milliseconds compile_limit{6000};

  judging_bench()
      : device_(make_device()),
        judge_(*device_, {.host_program = compile_limit, .block = compile_limit}) {}

  std::unique_ptr<device> make_device() {
    try {
      return make_cpu_device(
          {.core = -1, .share_cores = false, .node = "test", .call_limit = call_limit});
    } catch (const std::runtime_error&) {
      shares_cores_ = true;
      return make_cpu_device(
          {.core = -1, .share_cores = true, .node = "test", .call_limit = call_limit});
    }
  }

  bool shares_cores_ = false;
  std::unique_ptr<device> device_;
  evaluator judge_;
};

}  // namespace hone::testing_support
