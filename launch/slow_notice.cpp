#include "launch/slow_notice.hpp"

#include <iostream>
#include <utility>

namespace hone {
namespace {

using std::chrono::seconds;

constexpr seconds first_notice(2);
constexpr seconds next_notice(10);

}  // namespace

slow_notice::slow_notice(std::function<std::string()> doing)
    : doing_(std::move(doing)), thread_([this] { watch(); }) {}

slow_notice::~slow_notice() {
  {
    const std::lock_guard hold(lock_);
    has_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void slow_notice::watch() {
  std::unique_lock held(lock_);
  seconds after = first_notice;
  while (!ended_.wait_until(held, begin_ + after, [this] { return has_ended_; })) {
    std::cerr << "hone: " + doing_() + ", " + std::to_string(after.count()) + " s so far\n";
    after += next_notice;
  }
}

}  // namespace hone
