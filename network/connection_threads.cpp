#include "network/connection_threads.hpp"

#include <system_error>
#include <utility>

namespace hone {

void connection_threads::start(std::function<void()> serve, std::function<void()> end) {
  const std::scoped_lock guard(lock_);
  for (auto one = all_.begin(); one != all_.end();) {
    if (!one->has_ended) {
      ++one;
      continue;
    }
    one->thread.join();
    one = all_.erase(one);
  }
  if (has_stopped_ || all_.size() >= max_connections_) return;
  served& one = all_.emplace_back(std::move(serve), std::move(end));
  try {
    one.thread = std::thread([&one] {
      one.serve();
      one.has_ended = true;
    });
  } catch (const std::system_error&) {  // no thread is left
    all_.pop_back();
  }
}

void connection_threads::end_all() {
  const std::scoped_lock guard(lock_);
  has_stopped_ = true;
  for (served& one : all_) one.end();
  for (served& one : all_) one.thread.join();
  all_.clear();
}

}  // namespace hone
