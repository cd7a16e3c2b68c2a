#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// Prints how variants came to be: of each the first group that holds it, with the exemplars that
// were shown, and in one line how often it was written again.
class lineage_printer {
 public:
  explicit lineage_printer(const pool_inspector& pool) : pool_(pool) {}

  void print(const variant_id& id, const std::string& indent) {
    const bool known = !seen_.insert(id).second;
    std::cout << indent << "variant " << short_id(id) << scores_of(pool_, id)
              << (known ? "  (see above)" : "") << "\n";
    if (known) return;
    const std::vector<writing> all = writings_of(id);
    if (all.empty()) return;
    const writing& first = all.front();
    std::cout << indent << "  " << origin_of(first) << "\n";
    std::set<variant_id> exemplars;
    for (const auto e : first.group->getDraw().getExemplars()) exemplars.emplace(e.getVariantId());
    for (const variant_id& exemplar : exemplars) print(exemplar, indent + "    ");
    const std::string repetitions = repetitions_text(all);
    if (!repetitions.empty()) std::cout << indent << "  " << repetitions << "\n";
  }

 private:
  // A rollout of a variant with its group and the versions that wrote it.
  struct writing {
    record<schema::RolloutGroup> group;
    std::set<std::uint64_t> versions;
    std::optional<std::uint64_t> trained_into;
  };

  // Returns the rollouts of a variant, the earliest first.
  std::vector<writing> writings_of(const variant_id& id) const {
    std::vector<writing> all;
    for (const auto& written : pool_.rollouts_of(id)) {
      auto group = pool_.group(written.group);
      if (!group) continue;
      writing one{*std::move(group), {}, {}};
      for (const auto run : one.group->getRollouts()[written.index].getVersions())
        one.versions.insert(run.getVersion());
      const auto progress = pool_.progress(written.group);
      // The last version consumes a comparison's groups, but learns nothing from them.
      if (progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED &&
          one.group->getOrigin() != schema::RolloutGroup::Origin::COMPARISON)
        one.trained_into = (*progress)->getTrainedBy();
      all.push_back(std::move(one));
    }
    const auto time_of = [](const writing& one) {
      return std::pair(one.group->getFinishedMs(),
                       one.versions.empty() ? 0 : *one.versions.begin());
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const writing& a, const writing& b) { return time_of(a) < time_of(b); });
    return all;
  }

  static std::string origin_of(const writing& one) {
    if (one.group->getOrigin() == schema::RolloutGroup::Origin::CORPUS) return "from the corpus";
    std::string line =
        "written in " + std::string(name_of(one.group->getDraw().getStage())) + " by";
    for (const std::uint64_t version : one.versions) line += " version " + std::to_string(version);
    if (one.trained_into) line += ", trained into version " + std::to_string(*one.trained_into);
    const auto draw = one.group->getDraw();
    if (draw.getExemplars().size() > 0) line += ", with exemplars";
    if (draw.hasAttempt())
      line += ", turn " + std::to_string(draw.getTurn() + 1) + ": to better " +
              to_string(variant_id(draw.getAttempt().getVariantId())).substr(0, 10) + " (" +
              std::string(view(draw.getAttempt().getOutcome())) + ")";
    return line;
  }

  // Returns how often the policy wrote a variant after the first time, or an empty string. The
  // corpus has a variant once, although each type of device gets a group of it.
  static std::string repetitions_text(const std::vector<writing>& all) {
    std::set<std::uint64_t> versions;
    std::size_t count = 0;
    std::size_t trained = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i].group->getOrigin() == schema::RolloutGroup::Origin::CORPUS) continue;
      versions.insert(all[i].versions.begin(), all[i].versions.end());
      ++count;
      if (all[i].trained_into) ++trained;
    }
    if (count == 0) return "";
    std::string text = "written again in " + counted(count, "rollout");
    if (!versions.empty())
      text += " by versions " + std::to_string(*versions.begin()) + " to " +
              std::to_string(*versions.rbegin());
    return text + ", " + std::to_string(trained) + " of them trained on";
  }

  const pool_inspector& pool_;
  std::set<variant_id> seen_;
};

}  // namespace

void print_lineage(const pool_inspector& pool, const variant_id& first) {
  lineage_printer(pool).print(first, "");
}

ordered_json lineage_to_json(const pool_inspector& pool, const variant_id& first) {
  ordered_json all = ordered_json::array();
  std::vector<variant_id> open = {first};
  std::set<variant_id> seen = {first};
  while (!open.empty() && all.size() < max_lineage) {
    const variant_id id = open.back();
    open.pop_back();
    const auto v = pool.variant(id);
    if (!v) continue;
    all.push_back(variant_to_json(pool, **v));
    for (const auto& written : pool.rollouts_of(id)) {
      const auto group = pool.group(written.group);
      if (!group) continue;
      for (const auto e : (*group)->getDraw().getExemplars()) {
        if (seen.insert(variant_id(e.getVariantId())).second) open.emplace_back(e.getVariantId());
      }
    }
  }
  return all;
}

std::vector<descendant> descendants_of(const pool_inspector& pool, const variant_id& id,
                                       std::size_t max_groups) {
  std::map<variant_id, group_id> first_group;
  for (const group_id& shown_in : pool.groups_that_showed(id, max_groups)) {
    const auto group = pool.group(shown_in);
    if (!group) continue;
    for (const auto rollout : (*group)->getRollouts())
      first_group.try_emplace(variant_id(rollout.getVariantId()), shown_in);
  }
  first_group.erase(id);
  std::vector<descendant> all;
  for (const auto& [variant, group] : first_group) {
    descendant one{variant, group, {}};
    for (const auto& e : pool.evaluations_of(variant)) {
      if (e->getScope() == run_scope && has_score(*e))
        one.scores[text(e->getDeviceType())] = headline_of(*e);
    }
    all.push_back(std::move(one));
  }
  const auto fastest = [](const descendant& d) {
    double best = 0;
    for (const auto& [type, score] : d.scores) best = std::max(best, score.speedup);
    return best;
  };
  std::stable_sort(all.begin(), all.end(), [&](const descendant& a, const descendant& b) {
    return fastest(a) > fastest(b);
  });
  return all;
}

ordered_json descendants_to_json(const pool_inspector& pool, const variant_id& id) {
  ordered_json all = ordered_json::array();
  for (const descendant& d : descendants_of(pool, id)) {
    ordered_json scores = ordered_json::object();
    for (const auto& [type, score] : d.scores) scores[type] = score.speedup;
    all.push_back(
        {{"variant", to_string(d.variant)}, {"group", to_string(d.group)}, {"speedups", scores}});
  }
  return {{"variant", to_string(id)}, {"descendants", all}};
}

void print_descendants(const pool_inspector& pool, const variant_id& id) {
  constexpr std::size_t max_lines = 20;
  const auto all = descendants_of(pool, id);
  std::size_t with_score = 0;
  for (const descendant& d : all) with_score += d.scores.empty() ? 0 : 1;
  std::cout << counted(all.size(), "variant") << " of prompts that showed it, " << with_score
            << " with a score\n";
  for (std::size_t i = 0; i < std::min(with_score, max_lines); ++i)
    std::cout << "  " << short_id(all[i].variant) << scores_of(pool, all[i].variant) << "\n";
  if (with_score > max_lines) std::cout << "  and " << with_score - max_lines << " more\n";
}

}  // namespace hone
