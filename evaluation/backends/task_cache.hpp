#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>

#include "messages/ids.hpp"

namespace hone {

// Caches a judge's preparations for its most recently used tasks. `Prepared` has a member of() that
// returns its task. Confined to one thread.
template <typename Prepared>
class task_cache {
 public:
  // Keeps up to `capacity` tasks.
  explicit task_cache(std::size_t capacity) : capacity_(capacity) {}

  // Returns the cached preparation of the task. If there is none, calls `make`, which returns a
  // std::unique_ptr<Prepared>, and caches the result; if `make` throws, nothing is cached. The
  // reference stays valid until forget(), or until `capacity` other tasks have been asked for.
  template <typename Make>
  Prepared& of(task_id id, const Make& make) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one->of().id == id; });
    if (found == all_.end()) {
      all_.push_front(make());
      if (all_.size() > capacity_) all_.pop_back();
    } else {
      all_.splice(all_.begin(), all_, found);
    }
    return *all_.front();
  }

  void forget(task_id id) {
    all_.remove_if([&](const auto& one) { return one->of().id == id; });
  }

 private:
  std::size_t capacity_;
  std::list<std::unique_ptr<Prepared>> all_;  // most recently used first
};

}  // namespace hone
