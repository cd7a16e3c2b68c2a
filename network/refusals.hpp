#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace hone {

// Says whom a head has refused, and why. Of many refusals for one reason, the first is said at
// once, and the number of the others later.
class refusals {
 public:
  explicit refusals(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  void note(const std::string& address, const std::string& reason) {
    const auto [entry, is_new] = others_.try_emplace(reason, 0);
    if (!is_new) {
      ++entry->second;
      return;
    }
    if (log_) log_("a connection from " + address + " was refused: " + reason);
  }

  // Says how many more there were since the last time, if it is time for that.
  void report(std::chrono::steady_clock::time_point now) {
    if (now < next_) return;
    next_ = now + pause;
    for (const auto& [reason, count] : others_) {
      if (log_ && count > 0)
        log_(std::to_string(count) + " more connections were refused: " + reason);
    }
    others_.clear();
  }

 private:
  static constexpr std::chrono::seconds pause{10};
  std::function<void(const std::string&)> log_;
  std::map<std::string, std::uint64_t> others_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace hone
