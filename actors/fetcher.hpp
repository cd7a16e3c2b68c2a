#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "messages/interfaces.hpp"
#include "network/files/folder_copy.hpp"

namespace hone {

struct fetcher_options {
  copy_sources sources;         // called on the actor's own thread
  std::filesystem::path cache;  // folder of the copies
  bool has_own_thread = false;  // whose priority it lowers
  // Makes a copy fit for use here; called with each one that is complete. May throw policy_error.
  std::function<void(const std::filesystem::path&)> prepare;
};

// Copies checkpoints to a joined node, one piece after the other, and serves its mailbox between
// two pieces. A copy that has begun is made to its end; of the other versions that are not pinned
// only the last that was asked for is copied then. Keeps the copies that were asked for last.
// Blocks its thread while a piece comes, so it must be spawned detached.
struct fetcher_state {
  fetcher_state() = default;

  struct wanted_version {
    bool is_pinned = false;  // at least once
    std::vector<caf::typed_response_promise<std::string>> promises{};
  };

  fetcher_actor::stateful_pointer<fetcher_state> self = nullptr;
  fetcher_options options;
  activity counts{"fetcher", "fetcher"};
  std::map<std::uint64_t, wanted_version> wanted;
  struct copied_version {
    std::uint64_t number = 0;
    std::filesystem::path folder;
  };
  std::deque<copied_version> copied;  // the one that was asked for last comes last
  std::uint64_t newest = 0;           // of the versions asked for that are not pinned
  std::unique_ptr<folder_copy> copy;  // that is under way
  std::uint64_t copying = 0;          // its version
  std::uint64_t bytes_of_nodes = 0;   // that came from other nodes than the first
  std::chrono::steady_clock::time_point failing_since{};  // while connections fail
  bool is_failing = false;
  bool tick_is_due = false;

  caf::result<std::string> want(std::uint64_t version, bool is_pinned);
  void schedule_tick(std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  // Copies a piece of the version that is most wanted.
  void proceed();
  void answer(std::uint64_t version, const std::filesystem::path& folder);
  void refuse(std::uint64_t version, const std::string& reason);
  void delete_old_copies();
  // Deletes the copies of earlier fetchers.
  void clear_cache() const;
};

fetcher_actor::behavior_type fetcher_behavior(fetcher_actor::stateful_pointer<fetcher_state> self,
                                              std::string name, fetcher_options options);

}  // namespace hone
