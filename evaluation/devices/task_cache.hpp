#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>

#include "messages/ids.hpp"

namespace hone {

// What a judge keeps for the tasks that it met last. `Prepared` says with of() which task it
// belongs to. One thread.
template <typename Prepared>
class task_cache {
 public:
  explicit task_cache(std::size_t kept) : kept_(kept) {}

  // What is kept for the task, or what `make` gives, as a unique_ptr; where that throws, nothing is
  // kept. Stays until as many others came.
  template <typename Make>
  Prepared& of(task_id id, const Make& make) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one->of().id == id; });
    if (found != all_.end()) {
      all_.splice(all_.begin(), all_, found);
    } else {
      all_.push_front(make());
      if (all_.size() > kept_) all_.pop_back();
    }
    return *all_.front();
  }

  void forget(task_id id) {
    all_.remove_if([&](const auto& one) { return one->of().id == id; });
  }

 private:
  std::size_t kept_;
  std::list<std::unique_ptr<Prepared>> all_;  // most recently used first
};

}  // namespace hone
