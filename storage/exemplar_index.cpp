#include "storage/exemplar_index.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "messages/schema/storage.capnp.h"

namespace hone {
namespace {

// Number of the bucket of score 1. The 255 buckets below it reach down to a score of 1e-24.
constexpr double bucket_of_one = 256;
constexpr double max_bucket = 511;

std::string bucket_key(const population_key& where, std::uint32_t which) {
  std::string key = index_prefix('b', where);
  append_number(key, which);
  return key;
}

std::string islands_key(const task_id& task, const std::string& device_type) {
  return "i" + key_of(task) + device_type;
}

record<schema::IndexEntry> entry_record(const scored_variant& x) {
  record_builder<schema::IndexEntry> entry;
  x.variant.store(entry->initVariantId());
  entry->setScore(x.score);
  return entry.finish();
}

record<schema::IndexSlot> slot_record(std::uint32_t which, std::uint32_t ordinal, double score) {
  record_builder<schema::IndexSlot> slot;
  slot->setBucket(which);
  slot->setOrdinal(ordinal);
  slot->setScore(score);
  return slot.finish();
}

}  // namespace

std::string index_prefix(char kind, const population_key& where) {
  std::string key(1, kind);
  key += key_of(where.task);
  key += where.device_type;
  key += '\0';
  append_number(key, where.population);
  return key;
}

task_id task_of_index_key(std::string_view key) {
  const auto half = [&](std::size_t at) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i)
      number = number << 8U | static_cast<unsigned char>(key.at(1 + at + i));
    return number;
  };
  return {half(0), half(sizeof(std::uint64_t))};
}

std::string device_type_of_index_key(std::string_view key) {
  const std::string_view behind_task = key.substr(1 + key_of(task_id{}).size());
  return std::string(behind_task.substr(0, behind_task.find('\0')));
}

std::string index_entry_key(const population_key& where, std::uint32_t which,
                            std::uint32_t ordinal) {
  std::string key = index_prefix('e', where);
  append_number(key, which);
  append_number(key, ordinal);
  return key;
}

std::string index_slot_key(const population_key& where, const variant_id& variant) {
  return index_prefix('s', where) + key_of(variant);
}

std::uint32_t exemplar_index::bucket_of(double score) {
  const double steps = std::floor(std::log(std::max(score, 1e-12)) / std::log(bucket_ratio) + 1e-9);
  return static_cast<std::uint32_t>(std::clamp(bucket_of_one + steps, 0.0, max_bucket));
}

exemplar_index::cached_population& exemplar_index::load(const population_key& where) {
  const auto found = populations_.find(where);
  if (found != populations_.end()) return found->second;
  cached_population population;
  const std::string prefix = index_prefix('b', where);
  db_->scan<schema::BucketStatistics>(
      family::exemplars, prefix,
      [&](std::string_view key, const record<schema::BucketStatistics>& value) {
        if (value->getCount() > 0)
          population.buckets[read_number(key, prefix.size())] = {value->getCount(),
                                                                 value->getScoreSum()};
        return true;
      });
  return populations_.emplace(where, std::move(population)).first->second;
}

const exemplar_index::bucket_map& exemplar_index::buckets(const population_key& where) {
  return load(where).buckets;
}

void exemplar_index::store_bucket(const population_key& where, cached_population& population,
                                  std::uint32_t which) {
  const bucket b = population.buckets.contains(which) ? population.buckets[which] : bucket{};
  if (b.count == 0) population.buckets.erase(which);
  record_builder<schema::BucketStatistics> statistics;
  statistics->setCount(b.count);
  statistics->setScoreSum(b.score_sum);
  db_->put(family::exemplars, bucket_key(where, which), statistics.finish());
}

void exemplar_index::place(const population_key& where, const variant_id& variant, double score) {
  cached_population& population = load(where);
  const std::uint32_t target = bucket_of(score);
  if (const auto slot =
          db_->get<schema::IndexSlot>(family::exemplars, index_slot_key(where, variant))) {
    if ((*slot)->getBucket() == target) {
      population.buckets[target].score_sum += score - (*slot)->getScore();
      db_->put(family::exemplars, index_entry_key(where, target, (*slot)->getOrdinal()),
               entry_record({variant, score}));
      db_->put(family::exemplars, index_slot_key(where, variant),
               slot_record(target, (*slot)->getOrdinal(), score));
      store_bucket(where, population, target);
      return note_best(population, {variant, score});
    }
    take_out(where, population, variant, **slot);
  }
  bucket& into = population.buckets[target];
  const std::uint32_t ordinal = into.count++;
  into.score_sum += score;
  db_->put(family::exemplars, index_entry_key(where, target, ordinal),
           entry_record({variant, score}));
  db_->put(family::exemplars, index_slot_key(where, variant), slot_record(target, ordinal, score));
  store_bucket(where, population, target);
  note_best(population, {variant, score});
}

bool exemplar_index::contains(const population_key& where, const variant_id& variant) const {
  return db_->has(family::exemplars, index_slot_key(where, variant));
}

void exemplar_index::note_best(cached_population& population, const scored_variant& changed) {
  if (!population.best_known) return;
  if (!population.best || changed.score >= population.best->score) {
    population.best = changed;
  } else if (population.best->variant == changed.variant) {
    population.best_known = false;  // its score fell, so another variant may be the best now
  }
}

scored_variant exemplar_index::at(const population_key& where, std::uint32_t which,
                                  std::uint32_t ordinal) const {
  const auto entry =
      db_->get<schema::IndexEntry>(family::exemplars, index_entry_key(where, which, ordinal));
  if (!entry)
    throw pool_error(db_->folder().string() + ": the exemplar index has no entry " +
                     std::to_string(ordinal) + " in bucket " + std::to_string(which));
  return {variant_id((*entry)->getVariantId()), (*entry)->getScore()};
}

std::optional<scored_variant> exemplar_index::best(const population_key& where) {
  cached_population& population = load(where);
  if (!population.best_known) {
    population.best.reset();
    if (!population.buckets.empty()) {
      const auto& [which, top] = *population.buckets.rbegin();
      for (std::uint32_t ordinal = 0; ordinal < top.count; ++ordinal) {
        const scored_variant one = at(where, which, ordinal);
        if (!population.best || one.score > population.best->score) population.best = one;
      }
    }
    population.best_known = true;
  }
  return population.best;
}

void exemplar_index::take_out(const population_key& where, cached_population& population,
                              const variant_id& variant, const schema::IndexSlot::Reader& slot) {
  const std::uint32_t from = slot.getBucket();
  bucket& old = population.buckets[from];
  old.score_sum -= slot.getScore();
  // The bucket's last entry moves into the gap, so that ordinals stay dense.
  const std::uint32_t last = --old.count;
  if (slot.getOrdinal() != last) {
    const scored_variant moved = at(where, from, last);
    db_->put(family::exemplars, index_entry_key(where, from, slot.getOrdinal()),
             entry_record(moved));
    db_->put(family::exemplars, index_slot_key(where, moved.variant),
             slot_record(from, slot.getOrdinal(), moved.score));
  }
  db_->remove(family::exemplars, index_entry_key(where, from, last));
  db_->remove(family::exemplars, index_slot_key(where, variant));
  store_bucket(where, population, from);
  if (population.best_known && population.best && population.best->variant == variant)
    population.best_known = false;
}

bool exemplar_index::remove(const population_key& where, const variant_id& variant) {
  const auto slot = db_->get<schema::IndexSlot>(family::exemplars, index_slot_key(where, variant));
  if (slot) take_out(where, load(where), variant, **slot);
  return slot.has_value();
}

void exemplar_index::clear(const population_key& where) {
  for (const auto& [which, members] : load(where).buckets) {
    for (std::uint32_t ordinal = 0; ordinal < members.count; ++ordinal) {
      db_->remove(family::exemplars, index_slot_key(where, at(where, which, ordinal).variant));
      db_->remove(family::exemplars, index_entry_key(where, which, ordinal));
    }
    db_->remove(family::exemplars, bucket_key(where, which));
  }
  populations_[where] = {{}, std::nullopt, true};
}

std::vector<exemplar_index::leaders> exemplar_index::reset(std::size_t count) {
  std::set<population_key> stored;
  db_->scan_keys(family::exemplars, "b", [&](std::string_view key) {
    const std::string_view number = key.substr(key.size() - 2 * sizeof(std::uint32_t));
    stored.insert({task_of_index_key(key), device_type_of_index_key(key), read_number(number, 0)});
    return true;
  });
  std::vector<leaders> best;
  for (const population_key& where : stored) {
    leaders its{where.task, where.device_type, {}};
    const bucket_map& members = load(where).buckets;
    for (auto b = members.rbegin(); b != members.rend() && where.population == 0; ++b) {
      if (its.variants.size() >= count) break;
      for (std::uint32_t ordinal = 0; ordinal < b->second.count; ++ordinal)
        its.variants.push_back(at(where, b->first, ordinal));
    }
    std::sort(its.variants.begin(), its.variants.end(),
              [](const auto& a, const auto& b) { return a.score > b.score; });
    its.variants.resize(std::min(count, its.variants.size()));
    clear(where);
    if (!its.variants.empty()) best.push_back(std::move(its));
  }
  return best;
}

record<schema::Islands> exemplar_index::islands(const task_id& task, const std::string& device_type,
                                                std::uint32_t count) {
  const auto stored = db_->get<schema::Islands>(family::exemplars, islands_key(task, device_type));
  if (stored && (*stored)->getPopulations().size() == count) return *stored;
  record_builder<schema::Islands> fresh;
  const std::uint32_t first = stored ? (*stored)->getNext() : 1;
  auto populations = fresh->initPopulations(count);
  for (std::uint32_t i = 0; i < count; ++i) populations.set(i, first + i);
  fresh->setNext(first + count);
  return fresh.finish();
}

void exemplar_index::store_islands(const task_id& task, const std::string& device_type,
                                   const record<schema::Islands>& value) {
  db_->put(family::exemplars, islands_key(task, device_type), value);
}

std::uint32_t exemplar_index::population_on(const task_id& task, const std::string& device_type,
                                            std::uint32_t island, std::uint32_t count) {
  return islands(task, device_type, count)->getPopulations()[island % count];
}

}  // namespace hone
