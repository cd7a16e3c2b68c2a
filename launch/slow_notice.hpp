#pragma once

#include <functional>
#include <string>
#include <thread>

namespace hone {

// Says on standard error what a command is doing once that has taken two seconds, and again every
// ten seconds, until the notice goes out of scope. Quick work prints nothing.
class slow_notice {
 public:
  // `doing` returns the current activity, such as "verifying row.md". It is called from a thread of
  // the notice and must not throw.
  explicit slow_notice(std::function<std::string()> doing);

 private:
  std::jthread thread_;
};

}  // namespace hone
