#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "results/compact_groups.hpp"
#include "storage/inspection.hpp"

namespace hone {

// The evaluations of a run in memory, for lists that filter and sort: one for each variant and
// device type, by the newest judge that has judged it. A row takes 80 bytes.
struct catalogue {
  enum class origin : std::uint8_t { policy, corpus, client, comparison, unknown };

  struct row {
    variant_id variant;
    std::uint64_t closed_ms = 0;
    std::uint32_t place = 0;         // index into `places`
    std::uint32_t failure = 0;       // index into `failures`; 0: none
    std::uint32_t version = 0;       // of the policy, when the variant was written first
    std::uint16_t measurements = 0;  // that are ok
    Outcome outcome = Outcome::OK;
    origin from = origin::unknown;  // of the first rollout
    bool is_screened = false;
    bool is_copy = false;  // the prompt of the first rollout showed it
    // Of the headline, unrounded: other pages and the commands show the same numbers. 0: none.
    double speedup = 0;
    double lowest = 0;
    double highest = 0;
    double deciding = 0;
  };
  struct task_on_device {
    task_id task;
    std::string name;
    std::string device_type;
    bool is_held_out = false;
  };
  std::vector<task_on_device> places;  // sorted by name and device type
  std::vector<std::string> failures;   // message_class() of messages; the first is empty
  std::vector<row> rows;               // by place, and by closed_ms within a place

  // Returns the rows of a place.
  std::span<const row> rows_of(std::uint32_t place) const;
};

// Reads a pool's evaluations once. `groups` are those of the pool. Throws pool_error.
catalogue read_catalogue(const pool_inspector& pool, compact_groups groups);

}  // namespace hone
