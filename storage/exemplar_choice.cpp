#include "storage/exemplar_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "messages/schema/storage.capnp.h"
#include "messages/value_names.hpp"

namespace hone {
namespace {

constexpr double min_score = 1e-3;  // keeps logarithms finite

constexpr std::array<std::string_view, 4> method_names = {"buckets", "islands", "random", "none"};

std::uint32_t below(std::uint32_t bound, std::mt19937_64& random) {
  return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
}

}  // namespace

std::string_view name_of(exemplar_method method) {
  return method_names[static_cast<std::size_t>(method)];
}

std::optional<exemplar_method> exemplar_method_named(std::string_view name) {
  return value_named<exemplar_method>(method_names, name);
}

std::vector<scored_variant> exemplar_selector::from_buckets(const population_key& where,
                                                            std::mt19937_64& random) {
  std::vector<std::pair<std::uint32_t, exemplar_index::bucket>> left(index_->buckets(where).begin(),
                                                                     index_->buckets(where).end());
  std::vector<scored_variant> chosen;
  while (chosen.size() < options_.count && !left.empty()) {
    // exp(ln(mean) / temperature), relative to the largest, which keeps it from overflowing.
    double largest = min_score;
    for (const auto& [which, bucket] : left) largest = std::max(largest, bucket.mean());
    std::vector<double> weights;
    for (const auto& [which, bucket] : left)
      weights.push_back(
          std::pow(std::max(bucket.mean(), min_score) / largest, 1 / options_.temperature));
    const std::size_t pick =
        std::discrete_distribution<std::size_t>(weights.begin(), weights.end())(random);
    chosen.push_back(index_->at(where, left[pick].first, below(left[pick].second.count, random)));
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  arrange(chosen, random);
  return chosen;
}

void exemplar_selector::arrange(std::vector<scored_variant>& chosen,
                                std::mt19937_64& random) const {
  if (options_.shuffles_scores && chosen.size() > 1) {
    std::vector<double> scores;
    for (const scored_variant& one : chosen) scores.push_back(one.score);
    const std::size_t by = 1 + below(static_cast<std::uint32_t>(scores.size() - 1), random);
    std::rotate(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(by), scores.end());
    for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i].score = scores[i];
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const scored_variant& a, const scored_variant& b) { return a.score < b.score; });
}

std::vector<scored_variant> exemplar_selector::uniformly(const population_key& where,
                                                         std::mt19937_64& random) {
  const exemplar_index::bucket_map& buckets = index_->buckets(where);
  std::uint32_t total = 0;
  for (const auto& [which, bucket] : buckets) total += bucket.count;
  std::vector<std::uint32_t> numbers;
  while (numbers.size() < std::min(options_.count, total)) {
    const std::uint32_t number = below(total, random);
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end())
      numbers.push_back(number);
  }
  std::vector<scored_variant> chosen;
  for (std::uint32_t number : numbers) {
    for (const auto& [which, bucket] : buckets) {
      if (number < bucket.count) {
        chosen.push_back(index_->at(where, which, number));
        break;
      }
      number -= bucket.count;
    }
  }
  arrange(chosen, random);
  return chosen;
}

exemplar_selector::choice exemplar_selector::choose_in(const population_key& where,
                                                       std::mt19937_64& random) {
  if (options_.method == exemplar_method::none) return {};
  return {options_.method == exemplar_method::random ? uniformly(where, random)
                                                     : from_buckets(where, random),
          0};
}

exemplar_selector::choice exemplar_selector::choose_to_compare(const task_id& task,
                                                               const std::string& device_type,
                                                               std::mt19937_64& random) {
  const population_key where{task, device_type, compared};
  // The pool of an earlier version of Hone has no such population.
  const bool is_empty = index_->buckets(where).empty();
  return choose_in(is_empty ? population_key{task, device_type, 0} : where, random);
}

exemplar_selector::choice exemplar_selector::choose(const task_id& task,
                                                    const std::string& device_type,
                                                    std::mt19937_64& random) {
  if (options_.method != exemplar_method::islands) return choose_in({task, device_type, 0}, random);
  const std::uint32_t population =
      index_->population_on(task, device_type, below(options_.islands, random), options_.islands);
  auto chosen = from_buckets({task, device_type, population}, random);
  // A young island may have too few buckets. The exemplars then come from all islands.
  if (chosen.size() < options_.count) chosen = from_buckets({task, device_type, 0}, random);
  return {chosen, population};
}

void exemplar_selector::accept(const task_id& task, const std::string& device_type,
                               std::uint32_t population, const variant_id& variant, double score,
                               std::mt19937_64& random) {
  index_->place({task, device_type, 0}, variant, score);
  if (options_.method != exemplar_method::islands) return;
  const auto islands = index_->islands(task, device_type, options_.islands);
  // A variant that was drawn for no island (such as one of the corpus) is assigned to one. A
  // variant whose island has been reset since its draw joins none.
  std::vector<std::uint32_t> living;
  for (const std::uint32_t one : islands->getPopulations()) living.push_back(one);
  if (population == 0) population = living[variant.low % options_.islands];
  if (std::find(living.begin(), living.end(), population) != living.end())
    index_->place({task, device_type, population}, variant, score);
  record_builder<schema::Islands> next;
  next->setPopulations(islands->getPopulations());
  next->setNext(islands->getNext());
  next->setAccepted(islands->getAccepted() + 1);
  const bool is_due = next->getAccepted() >= options_.reset_after;
  index_->store_islands(task, device_type, next.finish());
  if (is_due) reset_islands(task, device_type, random);
}

void exemplar_selector::accept_to_compare(const task_id& task, const std::string& device_type,
                                          const variant_id& variant, double score,
                                          bool has_contrastive_begun) {
  const population_key where{task, device_type, compared};
  if (!has_contrastive_begun || index_->contains(where, variant))
    index_->place(where, variant, score);
}

bool exemplar_selector::withdraw(const task_id& task, const std::string& device_type,
                                 const variant_id& variant) {
  if (!index_->remove({task, device_type, 0}, variant)) return false;
  index_->remove({task, device_type, compared}, variant);
  if (options_.method != exemplar_method::islands) return true;
  for (const std::uint32_t population :
       index_->islands(task, device_type, options_.islands)->getPopulations())
    index_->remove({task, device_type, population}, variant);
  return true;
}

void exemplar_selector::reset_islands(const task_id& task, const std::string& device_type,
                                      std::mt19937_64& random) {
  const auto islands = index_->islands(task, device_type, options_.islands);
  std::vector<std::uint32_t> order(options_.islands);
  std::iota(order.begin(), order.end(), 0U);
  const auto strength = [&](std::uint32_t island) {
    const auto best = index_->best({task, device_type, islands->getPopulations()[island]});
    return best ? best->score : 0.0;
  };
  std::vector<double> scores;
  for (std::uint32_t i = 0; i < options_.islands; ++i) scores.push_back(strength(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return scores[a] < scores[b]; });

  record_builder<schema::Islands> next;
  auto populations = next->initPopulations(options_.islands);
  for (std::uint32_t i = 0; i < options_.islands; ++i)
    populations.set(i, islands->getPopulations()[i]);
  std::uint32_t number = islands->getNext();
  const std::uint32_t weaker = options_.islands / 2;
  for (std::uint32_t rank = 0; rank < weaker; ++rank) {
    const std::uint32_t island = order[rank];
    const std::uint32_t founder = order[weaker + below(options_.islands - weaker, random)];
    const auto best = index_->best({task, device_type, islands->getPopulations()[founder]});
    index_->clear({task, device_type, islands->getPopulations()[island]});
    populations.set(island, number);
    if (best) index_->place({task, device_type, number}, best->variant, best->score);
    ++number;
  }
  next->setNext(number);
  index_->store_islands(task, device_type, next.finish());
}

}  // namespace hone
