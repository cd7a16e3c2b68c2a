#include "storage/inspection.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "messages/measurements.hpp"
#include "messages/shown_variants.hpp"
#include "storage/pool.hpp"

namespace hone {

pool_inspector::pool_inspector(const std::filesystem::path& folder)
    : db_(folder, database::mode::read_only) {
  check_format(db_);
}

std::vector<record<schema::Task>> pool_inspector::tasks() const {
  std::vector<record<schema::Task>> all;
  db_.scan<schema::Task>(family::tasks, "",
                         [&](std::string_view /*key*/, const record<schema::Task>& task) {
                           all.push_back(task);
                           return true;
                         });
  return all;
}

std::optional<std::string> pool_inspector::task_name(const task_id& id) const {
  const auto task = db_.get<schema::Task>(family::tasks, key_of(id));
  if (!task) return std::nullopt;
  return std::string(view((*task)->getName()));
}

std::set<std::string> pool_inspector::scored_device_types() const {
  std::set<std::string> types;
  db_.scan_keys(family::exemplars, "b", [&](std::string_view key) {
    types.insert(device_type_of_index_key(key));
    return true;
  });
  return types;
}

void pool_inspector::each_evaluation_of_any_scope(const evaluation_visitor& visit) const {
  db_.scan<schema::Evaluation>(
      family::evaluations, "",
      [&](std::string_view key, const record<schema::Evaluation>& evaluation) {
        if (const auto parsed = evaluation_from_key(key)) visit(*parsed, evaluation);
        return true;
      });
}

void pool_inspector::each_evaluation(const evaluation_visitor& visit) const {
  each_evaluation_of_any_scope(
      [&](const evaluation_key& key, const record<schema::Evaluation>& evaluation) {
        if (key.scope == run_scope) visit(key, evaluation);
      });
}

bool counting_evaluations::counts(const evaluation_key& key) {
  if (is_comparison(key.scope)) return false;
  evaluation_key full = key;  // which comes first
  full.scope = run_scope;
  const bool is_counted_already = key.scope == screening_scope && full == last_;
  last_ = full;
  return !is_counted_already;
}

void pool_inspector::each_known_evaluation(const evaluation_visitor& visit) const {
  counting_evaluations known;
  each_evaluation_of_any_scope(
      [&](const evaluation_key& key, const record<schema::Evaluation>& evaluation) {
        if (known.counts(key)) visit(key, evaluation);
      });
}

std::vector<record<schema::Evaluation>> pool_inspector::top(std::size_t per_task) const {
  std::map<std::pair<task_id, std::string>, std::vector<record<schema::Evaluation>>> best;
  const auto better = [](const auto& a, const auto& b) {
    return headline_of(*a).deciding() > headline_of(*b).deciding();
  };
  each_evaluation([&](const evaluation_key& key, const record<schema::Evaluation>& evaluation) {
    if (!has_score(*evaluation)) return;
    auto& list = best[{task_id(evaluation->getTaskId()), key.device_type}];
    list.push_back(evaluation);
    if (list.size() > 4 * per_task + 64) {
      std::sort(list.begin(), list.end(), better);
      list.resize(per_task);
    }
  });
  std::vector<record<schema::Evaluation>> all;
  for (auto& [key, list] : best) {
    std::sort(list.begin(), list.end(), better);
    list.resize(std::min(list.size(), per_task));
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

namespace {

// Returns the only id of a family that begins with these hexadecimal digits. `what`: "variant".
template <class Id>
Id find_by_prefix(const database& db, family where, const std::string& prefix,
                  const std::string& what) {
  const auto low =
      parse_hex_id(prefix + std::string(32 - std::min<std::size_t>(prefix.size(), 32), '0'));
  const auto high =
      parse_hex_id(prefix + std::string(32 - std::min<std::size_t>(prefix.size(), 32), 'f'));
  if (prefix.empty() || !low || !high)
    throw pool_error("'" + prefix + "' is neither an id nor the beginning of one");
  const std::string end = key_of(Id{(*high)[0], (*high)[1]});
  std::vector<Id> found;
  db.scan_keys(
      where, "",
      [&](std::string_view key) {
        if (key > end) return false;
        found.push_back(id_from_key<Id>(key));
        return found.size() < 2;
      },
      key_of(Id{(*low)[0], (*low)[1]}));
  if (found.empty()) throw pool_error("no " + what + "'s id begins with '" + prefix + "'");
  if (found.size() > 1)
    throw pool_error("several " + what + "s' ids begin with '" + prefix + "', such as " +
                     to_string(found[0]).substr(0, prefix.size() + 4) + " and " +
                     to_string(found[1]).substr(0, prefix.size() + 4) + ": give more digits");
  return found.front();
}

}  // namespace

variant_id pool_inspector::find_variant(const std::string& prefix) const {
  return find_by_prefix<variant_id>(db_, family::variants, prefix, "variant");
}
group_id pool_inspector::find_group(const std::string& prefix) const {
  return find_by_prefix<group_id>(db_, family::groups, prefix, "group");
}

std::optional<record<schema::Variant>> pool_inspector::variant(const variant_id& id) const {
  return db_.get<schema::Variant>(family::variants, key_of(id));
}

std::vector<record<schema::Evaluation>> pool_inspector::evaluations_of(const variant_id& id) const {
  std::vector<record<schema::Evaluation>> all;
  db_.scan<schema::Evaluation>(
      family::evaluations, key_of(id),
      [&](std::string_view /*key*/, const record<schema::Evaluation>& evaluation) {
        all.push_back(evaluation);
        return true;
      });
  return all;
}

std::vector<pool_inspector::written_as> pool_inspector::rollouts_of(const variant_id& id) const {
  std::vector<written_as> all;
  db_.scan<schema::RolloutPlace>(
      family::rollouts, key_of(id),
      [&](std::string_view key, const record<schema::RolloutPlace>& place) {
        all.push_back({group_id(place->getGroupId()), place->getIndex(),
                       id_from_key<rollout_id>(key.substr(16))});
        return true;
      });
  return all;
}

std::vector<group_id> pool_inspector::groups_that_showed(const variant_id& id,
                                                         std::size_t limit) const {
  std::vector<group_id> found;
  const auto format = db_.get<schema::PoolFormat>(family::meta, "format");
  if (format && (*format)->getHasShown()) {
    db_.scan_keys(family::shown, key_of(id), [&](std::string_view key) {
      if (found.size() < limit) found.push_back(id_from_key<group_id>(key.substr(16)));
      return found.size() < limit;
    });
    return found;
  }
  db_.scan<schema::RolloutGroup>(
      family::groups, "", [&](std::string_view key, const record<schema::RolloutGroup>& group) {
        const auto shown = shown_variants(group->getDraw());
        if (std::find(shown.begin(), shown.end(), id) != shown.end())
          found.push_back(id_from_key<group_id>(key));
        return found.size() < limit;
      });
  return found;
}

std::optional<record<schema::RolloutGroup>> pool_inspector::group(const group_id& id) const {
  return db_.get<schema::RolloutGroup>(family::groups, key_of(id));
}
std::optional<record<schema::GroupProgress>> pool_inspector::progress(const group_id& id) const {
  return db_.get<schema::GroupProgress>(family::progress, key_of(id));
}
std::optional<record<schema::TrainingStep>> pool_inspector::step(std::uint64_t version) const {
  return db_.get<schema::TrainingStep>(family::steps, key_of(version));
}

std::uint64_t pool_inspector::next_version() const {
  const auto format = db_.get<schema::PoolFormat>(family::meta, "format");
  return format ? std::max((*format)->getNextVersion(), (*format)->getUnnamedVersion()) : 0;
}

std::uint32_t pool_inspector::judge_version() const {
  const auto format = db_.get<schema::PoolFormat>(family::meta, "format");
  return format ? (*format)->getJudgeVersion() : 0;
}

pool_inspector::statistics pool_inspector::count() const {
  statistics s;
  const auto count_keys = [&](family which, std::uint64_t& into) {
    db_.scan_keys(which, "", [&](std::string_view) {
      ++into;
      return true;
    });
  };
  count_keys(family::tasks, s.tasks);
  count_keys(family::rollouts, s.rollouts);
  count_keys(family::groups, s.groups);
  count_keys(family::pending, s.pending);
  count_keys(family::ready, s.ready);
  count_keys(family::versions, s.versions);
  std::set<variant_id> evaluated;
  std::set<variant_id> compared;
  counting_evaluations known;
  each_evaluation_of_any_scope([&](const evaluation_key& key, const auto& evaluation) {
    (is_comparison(key.scope) ? compared : evaluated).insert(key.variant);
    if (!known.counts(key)) return;
    ++s.evaluations;
    s.measurements += evaluation->getMeasurements().size();
    ++s.outcomes[key.device_type][std::string(name_of(evaluation->getOutcome()))];
  });
  // A run may go on meanwhile. Whatever was evaluated above is counted here.
  count_keys(family::variants, s.variants);
  s.evaluated_variants = evaluated.size();
  for (const variant_id& one : compared) s.compared_variants += evaluated.contains(one) ? 0 : 1;
  s.waiting_variants = s.variants - s.evaluated_variants - s.compared_variants;
  constexpr std::array<const char*, 4> states = {"pending", "ready", "trained", "dropped"};
  db_.scan<schema::GroupProgress>(
      family::progress, "",
      [&](std::string_view /*key*/, const record<schema::GroupProgress>& progress) {
        ++s.group_states[states[static_cast<std::size_t>(progress->getState()) % states.size()]];
        return true;
      });
  s.head = versions().head();
  return s;
}

}  // namespace hone
