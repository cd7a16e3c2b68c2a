#pragma once

#include <memory>

#include "evaluation/devices/cpu_device.hpp"
#include "evaluation/evaluator.hpp"

namespace hone::testing_support {

// A CPU device and an evaluator on it, with deadlines that tests can wait for; made once a program,
// since a device takes a second to warm up. Where another process has the core reserved, the cores
// are shared: verdicts on correctness do not mind.
class judging_bench {
 public:
  static judging_bench& instance() {
    static judging_bench bench;
    return bench;
  }

  judging_device& device() { return *device_; }
  evaluator& judge() { return judge_; }
  bool shares_cores() const { return shares_cores_; }
  // Under a sanitizer, receiving a command takes as long as a timed run.
#ifdef __SANITIZE_ADDRESS__
  static constexpr bool times_mean_nothing = true;
#else
  static constexpr bool times_mean_nothing = false;
#endif

 private:
  static constexpr std::chrono::milliseconds call_limit{
      2000};  // honest calls here take well under 20 ms
  static constexpr std::chrono::milliseconds compile_limit{
      6000};  // honest blocks take 0.3 s, on a busy machine 1.5 s

  judging_bench()
      : device_(make_device()),
        judge_(*device_, {.host_limit = compile_limit, .block_limit = compile_limit}) {}

  std::unique_ptr<judging_device> make_device() {
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
  std::unique_ptr<judging_device> device_;
  evaluator judge_;
};

}  // namespace hone::testing_support
