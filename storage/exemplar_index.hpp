#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/schema/storage.capnp.h"
#include "storage/database.hpp"

namespace hone {

// Variants that are shown together: of one task, scored on one type of device, on one island (0:
// all of them).
struct population_key {
  task_id task;
  std::string device_type;
  std::uint32_t population = 0;
  auto operator<=>(const population_key&) const = default;
};

struct scored_variant {
  variant_id variant;
  double score = 0;
};

// Scored variants in score buckets, kept so that any of them is found by its number in constant
// time and constant memory:
//   'e' population bucket ordinal -> IndexEntry        dense: 0 .. count - 1 in every bucket
//   's' population variant        -> IndexSlot
//   'b' population bucket         -> BucketStatistics
//   'i' task device               -> Islands
// Buckets are a factor of bucket_ratio wide. Reads and writes go through the database's uncommitted
// batch.
class exemplar_index {
 public:
  static constexpr double bucket_ratio = 1.25;

  struct bucket {
    std::uint32_t count = 0;
    double score_sum = 0;
    double mean() const { return score_sum / count; }
  };
  using bucket_map = std::map<std::uint32_t, bucket>;  // non-empty ones, by rising score

  explicit exemplar_index(database& db) : db_(&db) {}

  // Puts a variant where its score belongs, wherever it stood before.
  void place(const population_key& where, const variant_id& variant, double score);
  void remove(const population_key& where, const variant_id& variant);
  void clear(const population_key& where);

  const bucket_map& buckets(const population_key& where);
  scored_variant at(const population_key& where, std::uint32_t bucket, std::uint32_t ordinal) const;
  std::optional<scored_variant> best(const population_key& where);

  // The population on an island, and the record behind it.
  std::uint32_t population_on(const task_id& task, const std::string& device_type,
                              std::uint32_t island, std::uint32_t islands);
  record<schema::Islands> islands(const task_id& task, const std::string& device_type,
                                  std::uint32_t count);
  void store_islands(const task_id& task, const std::string& device_type,
                     const record<schema::Islands>& value);

  static std::uint32_t bucket_of(double score);

 private:
  struct cached_population {
    bucket_map buckets;
    std::optional<scored_variant> best;
    bool best_known = false;
  };
  cached_population& load(const population_key& where);
  void take_out(const population_key& where, cached_population& population,
                const variant_id& variant, const schema::IndexSlot::Reader& slot);
  static void note_best(cached_population& population, const scored_variant& changed);
  void store_bucket(const population_key& where, cached_population& population,
                    std::uint32_t which);

  database* db_;
  std::map<population_key, cached_population> populations_;
};

// Prefixes of the index's keys, for scans.
std::string index_prefix(char kind, const population_key& where);
std::string index_entry_key(const population_key& where, std::uint32_t bucket,
                            std::uint32_t ordinal);
std::string index_slot_key(const population_key& where, const variant_id& variant);

}  // namespace hone
