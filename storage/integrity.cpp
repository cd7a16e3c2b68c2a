#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "messages/measurements.hpp"
#include "messages/parse_number.hpp"
#include "messages/shown_variants.hpp"
#include "storage/exemplar_index.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

class checker {
 public:
  explicit checker(const pool_inspector& pool) : pool_(&pool), chain_(pool.versions()) {
    const auto format = pool.db().get<schema::PoolFormat>(family::meta, "format");
    has_shown_ = format && (*format)->getHasShown();
  }

  verification_report run() {
    check_groups();
    check_shown();
    check_variants_and_rollouts();
    check_evaluations();
    check_index();
    check_pending();
    check_ready();
    check_versions();
    return report_;
  }

 private:
  void complain(const std::string& problem) { report_.complain(problem); }
  template <class Schema>
  void each(family which, const std::string& what,
            const std::function<void(std::string_view, const record<Schema>&)>& visit) {
    std::uint64_t& count = report_.checked[what];
    pool_->db().scan<Schema>(which, "", [&](std::string_view key, const record<Schema>& value) {
      ++count;
      visit(key, value);
      return true;
    });
  }
  bool has(family which, const std::string& key) const { return pool_->db().has(which, key); }

  void check_groups() {
    each<schema::RolloutGroup>(
        family::groups, "groups",
        [&](std::string_view key, const record<schema::RolloutGroup>& group) {
          const group_id id = id_from_key<group_id>(key);
          const std::string name = "group " + to_string(id);
          if (group_id(group->getId()) != id) complain(name + ": stored under another id");
          if (!has(family::tasks, key_of(task_id(group->getDraw().getTaskId()))))
            complain(name + ": its task is missing");
          const auto shown = shown_variants(group->getDraw());
          shown_ += std::set(shown.begin(), shown.end()).size();
          for (const variant_id& variant : shown) {
            if (!has(family::variants, key_of(variant)))
              complain(name + ": the exemplar or attempt " + to_string(variant) + " is missing");
            if (has_shown_ && !has(family::shown, shown_key(variant, id)))
              complain(name + ": " + to_string(variant) + " is not in the index of shown variants");
          }
          std::uint32_t index = 0;
          for (const auto rollout : group->getRollouts()) {
            const variant_id variant(rollout.getVariantId());
            if (!has(family::variants, key_of(variant)))
              complain(name + ": the variant " + to_string(variant) + " is missing");
            const auto place = pool_->db().get<schema::RolloutPlace>(
                family::rollouts, rollout_key(variant, rollout_id(rollout.getId())));
            if (!place || group_id((*place)->getGroupId()) != id || (*place)->getIndex() != index)
              complain(name + ": rollout " + std::to_string(index) +
                       " is not in the index of rollouts");
            ++index;
          }
          rollouts_ += index;
          if (!has(family::progress, std::string(key))) complain(name + ": has no progress record");
        });
  }

  void check_shown() {
    if (!has_shown_) return;
    std::uint64_t& indexed = report_.checked["shown variants"];
    pool_->db().scan_keys(family::shown, "", [&](std::string_view) { return ++indexed > 0; });
    if (indexed != shown_)
      complain("the index of shown variants has " + std::to_string(indexed) +
               " entries, the draws of groups have " + std::to_string(shown_));
  }

  void check_variants_and_rollouts() {
    each<schema::Variant>(family::variants, "variants",
                          [&](std::string_view key, const record<schema::Variant>& variant) {
                            const variant_id id = id_from_key<variant_id>(key);
                            if (variant_id(variant->getId()) != id)
                              complain("variant " + to_string(id) + ": stored under another id");
                            bool written = false;
                            pool_->db().scan_keys(family::rollouts, key, [&](std::string_view) {
                              written = true;
                              return false;
                            });
                            if (!written)
                              complain("variant " + to_string(id) + ": no rollout wrote it");
                          });
    std::uint64_t indexed = 0;
    each<schema::RolloutPlace>(family::rollouts, "rollouts",
                               [&](std::string_view, const record<schema::RolloutPlace>& place) {
                                 ++indexed;
                                 if (!has(family::groups, key_of(group_id(place->getGroupId()))))
                                   complain("a rollout's group " +
                                            to_string(group_id(place->getGroupId())) +
                                            " is missing");
                               });
    if (indexed != rollouts_)
      complain("the index of rollouts has " + std::to_string(indexed) + " entries, groups have " +
               std::to_string(rollouts_) + " rollouts");
  }

  // The evaluations of a variant on a device type lie together.
  void check_evaluations() {
    const std::uint32_t judge = pool_->judge_version();
    population_key where;
    variant_id variant;
    std::optional<double> score;  // by the judge that has opened the pool last
    const auto check_slot = [&] {
      if (where.device_type.empty()) return;
      const std::string name = "evaluation of " + to_string(variant);
      const auto slot =
          pool_->db().get<schema::IndexSlot>(family::exemplars, index_slot_key(where, variant));
      if (score.has_value() != slot.has_value())
        complain(name + (score ? ": has a score, but is not in the exemplar index"
                               : ": has no score, but is in the exemplar index"));
      if (score && slot && (*slot)->getScore() != *score)
        complain(name + ": the exemplar index has another score");
    };
    each<schema::Evaluation>(
        family::evaluations, "evaluations",
        [&](std::string_view key, const record<schema::Evaluation>& evaluation) {
          const auto parsed = evaluation_from_key(key);
          if (!parsed) return complain("an evaluation's key is damaged");
          const std::string name = "evaluation of " + to_string(parsed->variant);
          if (variant_id(evaluation->getVariantId()) != parsed->variant ||
              view(evaluation->getDeviceType()) != parsed->device_type)
            complain(name + ": stored under another key");
          if (!has(family::variants, key_of(parsed->variant)))
            complain(name + ": the variant is missing");
          std::set<measurement_id> measurements;
          for (const auto m : evaluation->getMeasurements()) {
            if (!measurements.insert(measurement_id(m.getId())).second)
              complain(name + ": a measurement is counted twice");
          }
          if (parsed->scope != run_scope) return;
          if (parsed->variant != variant || parsed->device_type != where.device_type) {
            check_slot();
            where = {task_id(evaluation->getTaskId()), parsed->device_type, 0};
            variant = parsed->variant;
            score.reset();
          }
          if (parsed->judge == judge && has_score(*evaluation)) score = evaluation->getScore();
        });
    check_slot();
  }

  // Checks that entries and slots refer to each other, that the ordinals of each bucket are dense,
  // and that its statistics are the sums over its entries.
  void check_index() {
    struct sum {
      std::uint32_t count = 0;
      double score = 0;
      std::uint32_t highest = 0;
    };
    std::map<std::string, sum> sums;
    std::uint64_t& entries = report_.checked["exemplar index entries"];
    pool_->db().scan<schema::IndexEntry>(
        family::exemplars, "e", [&](std::string_view key, const record<schema::IndexEntry>& entry) {
          ++entries;
          const std::string_view population = key.substr(1, key.size() - 9);
          const std::uint32_t which = read_number(key, key.size() - 8);
          const std::uint32_t ordinal = read_number(key, key.size() - 4);
          sum& s = sums[std::string(key.substr(1, key.size() - 5))];
          ++s.count;
          s.score += entry->getScore();
          s.highest = std::max(s.highest, ordinal);
          const auto slot = pool_->db().get<schema::IndexSlot>(
              family::exemplars,
              "s" + std::string(population) + key_of(variant_id(entry->getVariantId())));
          if (!slot || (*slot)->getBucket() != which || (*slot)->getOrdinal() != ordinal ||
              (*slot)->getScore() != entry->getScore()) {
            complain("exemplar index: the entry of " +
                     to_string(variant_id(entry->getVariantId())) + " and its slot disagree");
          }
          if (exemplar_index::bucket_of(entry->getScore()) != which)
            complain("exemplar index: " + to_string(variant_id(entry->getVariantId())) +
                     " is in the wrong bucket");
          return true;
        });
    std::uint64_t slots = 0;
    pool_->db().scan_keys(family::exemplars, "s", [&](std::string_view) {
      ++slots;
      return true;
    });
    if (slots != entries)
      complain("exemplar index: " + std::to_string(entries) + " entries and " +
               std::to_string(slots) + " slots");
    for (const auto& [key, s] : sums) {
      if (s.highest + 1 != s.count) complain("exemplar index: a bucket's ordinals are not dense");
      const auto statistics =
          pool_->db().get<schema::BucketStatistics>(family::exemplars, "b" + key);
      if (!statistics || (*statistics)->getCount() != s.count ||
          std::abs((*statistics)->getScoreSum() - s.score) > 1e-6 * std::max(1.0, s.score))
        complain("exemplar index: a bucket's statistics are wrong");
    }
    pool_->db().scan<schema::BucketStatistics>(
        family::exemplars, "b",
        [&](std::string_view key, const record<schema::BucketStatistics>& statistics) {
          if (statistics->getCount() > 0 && !sums.contains(std::string(key.substr(1))))
            complain("exemplar index: statistics of a bucket without entries");
          return true;
        });
  }

  void check_pending() {
    each<schema::PendingWork>(family::pending, "pending work",
                              [&](std::string_view key, const record<schema::PendingWork>& work) {
                                const auto parsed = evaluation_from_key(key);
                                if (!parsed || !has(family::variants, key_of(parsed->variant)))
                                  return complain("pending work for a variant that is missing");
                                for (const auto group : work->getGroups())
                                  ++waits_[group_id(group)];
                              });
  }

  void check_ready() {
    std::set<group_id> queued;
    each<schema::ReadyGroup>(
        family::ready, "ready groups",
        [&](std::string_view key, const record<schema::ReadyGroup>& entry) {
          const group_id id(entry->getGroupId());
          const auto progress = pool_->progress(id);
          if (!queued.insert(id).second)
            complain("group " + to_string(id) + ": is in the ready queue twice");
          if (!progress || (*progress)->getState() != schema::GroupProgress::State::READY ||
              (*progress)->getReadySequence() != number_from_key(key))
            complain("group " + to_string(id) +
                     ": is in the ready queue, but its progress record disagrees");
        });
    each<schema::GroupProgress>(
        family::progress, "groups' progress",
        [&](std::string_view key, const record<schema::GroupProgress>& progress) {
          const group_id id = id_from_key<group_id>(key);
          const std::string name = "group " + to_string(id);
          if (!has(family::groups, std::string(key)))
            complain(name + ": has a progress record, but no contents");
          const bool is_ready = progress->getState() == schema::GroupProgress::State::READY;
          if (is_ready != queued.contains(id))
            complain(name + ": its progress record and the ready queue disagree");
          const bool is_pending = progress->getState() == schema::GroupProgress::State::PENDING;
          if (is_pending != waits_.contains(id))
            complain(name + (is_pending ? ": waits for an evaluation, but no work is pending for it"
                                        : ": is complete, but work is pending for it"));
          if (progress->getState() == schema::GroupProgress::State::TRAINED &&
              chain_.find(progress->getTrainedBy()) == nullptr)
            complain(name + ": was trained on by a version that is missing");
        });
  }

  void check_versions() {
    each<schema::PolicyVersion>(
        family::versions, "policy versions",
        [&](std::string_view, const record<schema::PolicyVersion>& version) {
          const std::string name = "version " + std::to_string(version->getVersion());
          const auto* parent = chain_.find(version->getParent());
          const bool is_root = version->getParent() == version->getVersion();
          if (parent == nullptr) complain(name + ": its parent is missing");
          if (parent != nullptr && !is_root && (*parent)->getDepth() + 1 != version->getDepth())
            complain(name + ": its depth is not its parent's depth plus one");
          if (!is_root && !pool_->step(version->getVersion())) complain(name + ": no step made it");
        });
    each<schema::TrainingStep>(
        family::steps, "training steps",
        [&](std::string_view, const record<schema::TrainingStep>& step) {
          if (chain_.find(step->getVersion()) == nullptr)
            complain("a step made version " + std::to_string(step->getVersion()) +
                     ", which is missing");
          for (const auto group : step->getGroups()) {
            if (!has(family::groups, key_of(group_id(group))))
              complain("the step to version " + std::to_string(step->getVersion()) +
                       ": the group " + to_string(group_id(group)) + " is missing");
          }
        });
    if (!chain_.head()) return;
    std::map<group_id, std::uint64_t> trained;
    for (const std::uint64_t version : chain_.path_to(*chain_.head())) {
      const auto step = pool_->step(version);
      if (!step) continue;
      for (const auto group : (*step)->getGroups()) {
        const auto [earlier, fresh] = trained.emplace(group_id(group), version);
        if (!fresh)
          complain("group " + to_string(group_id(group)) +
                   ": trained on twice along the chain, by versions " +
                   std::to_string(earlier->second) + " and " + std::to_string(version));
      }
    }
    report_.checked["groups trained on along the chain"] = trained.size();
  }

  const pool_inspector* pool_;
  version_chain chain_;
  verification_report report_;
  std::uint64_t rollouts_ = 0;
  std::uint64_t shown_ = 0;  // pairs of a variant and a group whose prompt showed it
  bool has_shown_ = false;   // the pool has an index of the pairs
  std::map<group_id, std::size_t> waits_;
};

}  // namespace

verification_report verify_pool(const pool_inspector& pool) {
  // With a busy writer, a newer snapshot may take the place of the first during the checks.
  // References between two snapshots mean nothing, so the checks are then repeated.
  constexpr int attempts = 10;
  verification_report report;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint64_t snapshot = pool.db().snapshots();
    report = checker(pool).run();
    if (pool.db().snapshots() == snapshot) break;
  }
  return report;
}

void check_acknowledgments(const pool_inspector& pool, const std::filesystem::path& file,
                           verification_report& report) {
  std::ifstream in(file);
  if (!in) throw pool_error(file.string() + ": cannot be opened");
  const auto holds_measurement = [&](const measurement_id& id, const variant_id& variant) {
    for (const auto& e : pool.evaluations_of(variant)) {
      if (measurement_id(e->getMeasurementId()) == id) return true;
      for (const auto m : e->getMeasurements()) {
        if (measurement_id(m.getId()) == id) return true;
      }
    }
    return false;
  };
  const version_chain versions = pool.versions();
  // A last line without its newline was never acknowledged.
  for (std::string line; std::getline(in, line) && !in.eof();) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what >> first >> second;
    const auto id = parse_hex_id(first);
    const auto variant = parse_hex_id(second);
    bool found = false;
    if (what == "group" && id) {
      found = pool.group(group_id{(*id)[0], (*id)[1]}).has_value();
    } else if (what == "measurement" && id && variant) {
      found = holds_measurement({(*id)[0], (*id)[1]}, {(*variant)[0], (*variant)[1]});
    } else if (what == "version") {
      const auto number = parse_number<std::uint64_t>(first);
      found = number && versions.find(*number) != nullptr;
    }
    ++report.checked["acknowledgments"];
    if (!found) report.complain("acknowledged, but missing: " + line);
  }
}

}  // namespace hone
