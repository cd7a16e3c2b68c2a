#include "results/catalogue.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "messages/measurements.hpp"
#include "results/message_class.hpp"

namespace hone {
namespace {

catalogue::origin origin_of(schema::RolloutGroup::Origin origin) {
  using Origin = schema::RolloutGroup::Origin;
  return origin == Origin::CORPUS       ? catalogue::origin::corpus
         : origin == Origin::SERVICE    ? catalogue::origin::client
         : origin == Origin::COMPARISON ? catalogue::origin::comparison
                                        : catalogue::origin::policy;
}

// How each variant was written first.
class first_writings {
 public:
  // Keeps the variants alone of the groups.
  explicit first_writings(compact_groups groups) : known_(groups.variants.size()) {
    for (const compact_group& group : groups.groups) {
      for (const auto& rollout : groups.rollouts_of(group)) {
        if (rollout.variant == compact_groups::no_variant) continue;
        writing& first = known_[rollout.variant];
        if (first.from == catalogue::origin::unknown)
          first = {group.policy_version, origin_of(group.origin), rollout.is_copy != 0};
      }
    }
    variants_ = std::move(groups.variants);
  }

  struct writing {
    std::uint32_t version = 0;
    catalogue::origin from = catalogue::origin::unknown;
    bool is_copy = false;
  };
  std::size_t variants() const { return variants_.size(); }
  writing of(const variant_id& id) const {
    const std::uint32_t index = index_of(variants_, id);
    return index == compact_groups::no_variant ? writing() : known_[index];
  }

 private:
  std::vector<variant_id> variants_;
  std::vector<writing> known_;
};

class catalogue_reader {
 public:
  explicit catalogue_reader(const pool_inspector& pool) : pool_(pool) {
    for (const auto& t : pool.tasks())
      tasks_[task_id(t->getId())] = {std::string(view(t->getName())), t->getHeldOut()};
    found_.failures.emplace_back();
  }

  catalogue read(const first_writings& first) {
    found_.rows.reserve(first.variants());
    counting_evaluations counting;
    pool_.each_evaluation_of_any_scope(
        [&](const evaluation_key& key, const record<schema::Evaluation>& e) {
          if (counting.counts(key)) add(key, *e, first);
        });
    sort_places();
    std::sort(found_.rows.begin(), found_.rows.end(), [](const auto& a, const auto& b) {
      return std::tie(a.place, a.closed_ms, a.variant) < std::tie(b.place, b.closed_ms, b.variant);
    });
    return std::move(found_);
  }

 private:
  void add(const evaluation_key& key, const schema::Evaluation::Reader& e,
           const first_writings& first) {
    catalogue::row row{.variant = key.variant, .closed_ms = e.getClosedMs()};
    row.place = place_of(task_id(e.getTaskId()), key.device_type);
    row.outcome = e.getOutcome();
    row.is_screened = is_screening(key.scope);
    const headline score = headline_of(e);
    row.measurements = static_cast<std::uint16_t>(
        std::min<std::size_t>(score.measurements, std::numeric_limits<std::uint16_t>::max()));
    row.speedup = score.speedup;
    row.lowest = score.lowest;
    row.highest = score.highest;
    row.deciding = score.deciding();
    if (row.outcome != Outcome::OK) row.failure = failure_of(message_class(view(e.getMessage())));
    const auto [version, from, is_copy] = first.of(key.variant);
    row.version = version;
    row.from = from;
    row.is_copy = is_copy;
    // The newest judge's evaluation of a variant on a device type comes last.
    if (!found_.rows.empty() && found_.rows.back().variant == row.variant &&
        found_.rows.back().place == row.place) {
      found_.rows.back() = row;
    } else {
      found_.rows.push_back(row);
    }
  }

  std::uint32_t place_of(const task_id& task, const std::string& device_type) {
    const auto [known, is_new] =
        places_.try_emplace({task, device_type}, static_cast<std::uint32_t>(found_.places.size()));
    if (is_new) {
      const auto described = tasks_.find(task);
      const bool is_known = described != tasks_.end();
      found_.places.push_back({task,
                               is_known ? described->second.first : to_string(task).substr(0, 10),
                               device_type, is_known && described->second.second});
    }
    return known->second;
  }

  std::uint32_t failure_of(const std::string& message) {
    const auto [known, is_new] =
        failures_.try_emplace(message, static_cast<std::uint32_t>(found_.failures.size()));
    if (is_new) found_.failures.push_back(message);
    return known->second;
  }

  void sort_places() {
    std::vector<std::uint32_t> order(found_.places.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto& x = found_.places[a];
      const auto& y = found_.places[b];
      return std::tie(x.name, x.device_type, x.task) < std::tie(y.name, y.device_type, y.task);
    });
    std::vector<catalogue::task_on_device> sorted;
    std::vector<std::uint32_t> moved(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      moved[order[i]] = i;
      sorted.push_back(std::move(found_.places[order[i]]));
    }
    found_.places = std::move(sorted);
    for (catalogue::row& row : found_.rows) row.place = moved[row.place];
  }

  const pool_inspector& pool_;
  catalogue found_;
  std::map<task_id, std::pair<std::string, bool>> tasks_;
  std::map<std::pair<task_id, std::string>, std::uint32_t> places_;
  std::map<std::string, std::uint32_t> failures_;
};

}  // namespace

std::span<const catalogue::row> catalogue::rows_of(std::uint32_t place) const {
  const auto [begin, end] = std::ranges::equal_range(rows, place, {}, &row::place);
  return {begin, end};
}

catalogue read_catalogue(const pool_inspector& pool, compact_groups groups) {
  return catalogue_reader(pool).read(first_writings(std::move(groups)));
}

}  // namespace hone
