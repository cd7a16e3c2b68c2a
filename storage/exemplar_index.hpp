#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/ids.hpp"
#include "messages/schema/storage.capnp.h"
#include "storage/database.hpp"

namespace hone {

// Identifies a population: the variants of one task that are scored on one device type, either all
// of them (0) or those of one island.
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

// Keeps scored variants in score buckets on disk, so that the variant at any ordinal of a bucket is
// found in constant time and constant memory. Keys:
//   'e' population bucket ordinal -> IndexEntry        ordinals of a bucket are 0 .. count - 1
//   's' population variant        -> IndexSlot
//   'b' population bucket         -> BucketStatistics
//   'i' task device               -> Islands
// Buckets are a factor of bucket_ratio wide; their statistics are cached in memory. Reads and
// writes go through the database's uncommitted batch. `db` must outlive the index. Not thread-safe.
// Throws pool_error.
class exemplar_index {
 public:
  static constexpr double bucket_ratio = 1.25;

  struct bucket {
    std::uint32_t count = 0;
    double score_sum = 0;
    double mean() const { return score_sum / count; }
  };
  using bucket_map = std::map<std::uint32_t, bucket>;  // non-empty buckets by ascending score

  explicit exemplar_index(database& db) : db_(&db) {}

  // Puts a variant into the bucket of its score, and moves it if it is in another bucket.
  void place(const population_key& where, const variant_id& variant, double score);
  bool contains(const population_key& where, const variant_id& variant) const;
  // Returns false, without effect, if the variant is not in the population.
  bool remove(const population_key& where, const variant_id& variant);
  void clear(const population_key& where);
  // A place with its variants of highest score.
  struct leaders {
    task_id task;
    std::string device_type;
    std::vector<scored_variant> variants;  // by falling score
  };
  // Removes all variants of all populations. Returns the `count` best ones of each task and device
  // type.
  std::vector<leaders> reset(std::size_t count);

  // The reference stays valid as long as the index; its contents follow later changes.
  const bucket_map& buckets(const population_key& where);
  // Throws pool_error if `bucket` has no such ordinal.
  scored_variant at(const population_key& where, std::uint32_t bucket, std::uint32_t ordinal) const;
  // Returns the variant with the highest score, or nullopt if the population is empty.
  std::optional<scored_variant> best(const population_key& where);

  // Returns the population that lives on `island` of `islands`.
  std::uint32_t population_on(const task_id& task, const std::string& device_type,
                              std::uint32_t island, std::uint32_t islands);
  // Returns the stored record of `count` islands. If there is none, or one of another count,
  // returns a record with new, empty populations without storing it.
  record<schema::Islands> islands(const task_id& task, const std::string& device_type,
                                  std::uint32_t count);
  void store_islands(const task_id& task, const std::string& device_type,
                     const record<schema::Islands>& value);

  // Returns the number of a score's bucket; numbers rise with scores.
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

// Returns the common start of a population's keys of one kind: 'e', 's' or 'b'.
std::string index_prefix(char kind, const population_key& where);
// Return the task and the device type of a population from a key that begins with index_prefix().
task_id task_of_index_key(std::string_view key);
std::string device_type_of_index_key(std::string_view key);
// Returns the key of an IndexEntry.
std::string index_entry_key(const population_key& where, std::uint32_t bucket,
                            std::uint32_t ordinal);
// Returns the key of an IndexSlot.
std::string index_slot_key(const population_key& where, const variant_id& variant);

}  // namespace hone
