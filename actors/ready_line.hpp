#pragma once

#include <caf/actor_addr.hpp>

#include <deque>
#include <optional>
#include <set>

namespace hone {

// Workers that wait for jobs of one device type, first in, first out, so that they take turns. A
// worker that cannot take jobs any more stays until it is reached, so that its end needs no search.
class ready_line {
 public:
  // Appends a worker to the line unless it is already in it.
  void add(const caf::actor_addr& worker) {
    if (present_.insert(worker).second) line_.push_back(worker);
  }

  // Whether the worker that is met can have the job.
  enum class fitness {
    fit,
    unfit,  // for this job; it keeps its place
    gone,   // it has no credits, or has ended; it leaves the line
  };
  // Takes the first worker that is fit out of the line. Returns nullopt if there is none.
  template <class Judge>
  std::optional<caf::actor_addr> take(const Judge& judge) {
    for (std::size_t i = 0; i < line_.size();) {
      const caf::actor_addr worker = line_[i];
      const fitness found = judge(worker);
      if (found == fitness::unfit) {
        ++i;
        continue;
      }
      line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
      present_.erase(worker);
      if (found == fitness::fit) return worker;
    }
    return std::nullopt;
  }

 private:
  std::deque<caf::actor_addr> line_;
  std::set<caf::actor_addr> present_;
};

}  // namespace hone
