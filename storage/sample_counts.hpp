#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "messages/names.hpp"
#include "storage/database.hpp"

namespace hone {

// Counts samples by stage and outcome, on disk and in memory. Changes go into the database's
// uncommitted batch. `db` must outlive the counts. Not thread-safe. Throws pool_error.
class sample_counts {
 public:
  // Reads the counts of a pool.
  explicit sample_counts(database& db);
  void count(Stage stage, const std::vector<Outcome>& outcomes);
  std::map<Outcome, std::uint64_t> of(Stage stage) const;

 private:
  database* db_;
  std::map<Stage, std::map<Outcome, std::uint64_t>> counts_;
};

}  // namespace hone
