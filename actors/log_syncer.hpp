#pragma once

#include <caf/behavior.hpp>
#include <caf/fwd.hpp>

#include <memory>
#include <mutex>
#include <string>

#include "storage/pool.hpp"

namespace hone {

// An open pool whose log is synced by a separate actor, so that the pool's actor works while the
// disk does. Safe on any thread.
class open_log {
 public:
  explicit open_log(pool& of) : of_(&of) {}
  // Syncs what the pool has written. Returns what went wrong, or an empty string.
  std::string sync();
  // Waits for a sync() that is under way. Later ones do nothing. Must be called before the pool
  // closes.
  void close();

 private:
  std::mutex mutex_;
  pool* of_;  // null when closed
};

// Answers (flush_atom) with what open_log::sync() returns. Its thread waits for the disk meanwhile.
caf::behavior log_syncer_behavior(caf::event_based_actor* self, std::shared_ptr<open_log> log);

}  // namespace hone
