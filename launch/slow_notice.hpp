#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace hone {

// Says on standard error what a command is doing once that has taken two seconds, and again every
// ten seconds, until the notice goes out of scope. Quick work prints nothing.
class slow_notice {
 public:
  // `doing` returns what is being done, such as "verifying row.md". It is called from a thread of
  // the notice and must not throw.
  explicit slow_notice(std::function<std::string()> doing);
  ~slow_notice();
  slow_notice(const slow_notice&) = delete;
  slow_notice& operator=(const slow_notice&) = delete;

 private:
  void watch();

  const std::function<std::string()> doing_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex lock_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace hone
