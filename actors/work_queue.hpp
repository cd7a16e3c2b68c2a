#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "messages/ids.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Gives jobs to the workers that asked for them: first in, first out for each type of device. Remembers who has what, so that a
// lost worker's jobs go back in front, one attempt later; after the last attempt the pool hears that nobody could do it.
template <class Job>
struct work_queue_state {
  struct worker {
    worker_actor<Job> handle;
    std::vector<std::string> device_types;
    std::uint32_t credits = 0;
    std::map<measurement_id, Job> working_on;
    bool serves(std::string_view device_type) const;
  };

  work_queue_state() = default;

  typename queue_actor<Job>::template stateful_pointer<work_queue_state> self = nullptr;
  pool_actor pool;
  std::string stage;
  activity counts{"", "queue"};
  std::map<std::string, std::deque<Job>> waiting;                // by device type
  std::map<caf::actor_addr, worker> workers;
  caf::actor_addr last_served;                                   // round robin among equals

  void put(const Job& job);
  void pull(const caf::strong_actor_ptr& who, const std::vector<std::string>& device_types, std::uint32_t credits);
  void done(const caf::strong_actor_ptr& who, const measurement_id& id);
  void lose(const caf::actor_addr& who);
  void hand_out(const std::string& device_type);
  worker* find_worker(const Job& job, bool avoid_first_device);
  std::size_t queued() const;
  std::size_t in_flight() const;
};

// `stage` names it: "compile", "verify", "benchmark".
template <class Job>
typename queue_actor<Job>::behavior_type work_queue(typename queue_actor<Job>::template stateful_pointer<work_queue_state<Job>> self, std::string stage, pool_actor pool);

extern template struct work_queue_state<compile_job>;
extern template struct work_queue_state<verify_job>;
extern template struct work_queue_state<benchmark_job>;

}  // namespace hone
