#include "launch/slow_notice.hpp"

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <utility>

namespace hone {
namespace {

using std::chrono::seconds;

constexpr seconds first_notice(2);
constexpr seconds next_notice(10);

void give_notice(const std::stop_token& ended, const std::function<std::string()>& doing) {
  const auto begin = std::chrono::steady_clock::now();
  std::mutex lock;
  std::unique_lock held(lock);
  std::condition_variable_any pause;
  const auto has_ended = [&] { return ended.stop_requested(); };
  for (seconds after = first_notice; !pause.wait_until(held, ended, begin + after, has_ended);
       after += next_notice)
    std::cerr << "hone: " + doing() + ", " + std::to_string(after.count()) + " s so far\n";
}

}  // namespace

slow_notice::slow_notice(std::function<std::string()> doing)
    : thread_(give_notice, std::move(doing)) {}

}  // namespace hone
