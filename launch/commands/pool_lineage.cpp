#include <iostream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "launch/commands/pool_variants.hpp"
#include "launch/printing.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

class lineage_printer {
 public:
  explicit lineage_printer(const pool_inspector& pool) : pool_(pool) {}

  void print(const variant_id& id, const std::string& indent) {
    std::string scores;
    for (const auto& e : pool_.evaluations_of(id)) {
      if (e->getScope() == 0)
        scores += "  " + (e->getOutcome() == Outcome::OK ? fixed(e->getScore(), 2) + "x"
                                                         : std::string(name_of(e->getOutcome())));
    }
    const bool known = !seen_.insert(id).second;
    std::cout << indent << "variant " << short_id(id) << scores << (known ? "  (see above)" : "")
              << "\n";
    if (known) return;
    std::map<std::string, std::pair<std::size_t, std::set<variant_id>>> origins;
    std::vector<std::string> order;
    for (const auto& written : pool_.rollouts_of(id)) {
      const auto group = pool_.group(written.group);
      if (!group) continue;
      const auto [line, exemplars] = origin_of(**group, written);
      if (!origins.contains(line)) order.push_back(line);
      auto& [count, shown] = origins[line];
      ++count;
      shown.insert(exemplars.begin(), exemplars.end());
    }
    for (const std::string& line : order) {
      const auto& [count, shown] = origins[line];
      std::cout << indent << "  " << line
                << (count > 1 ? " (" + std::to_string(count) + " rollouts)" : "") << "\n";
      for (const variant_id& exemplar : shown) print(exemplar, indent + "    ");
    }
  }

 private:
  std::pair<std::string, std::vector<variant_id>> origin_of(
      const schema::RolloutGroup::Reader& group, const pool_inspector::written_as& written) const {
    std::vector<variant_id> exemplars;
    for (const auto e : group.getDraw().getExemplars()) exemplars.emplace_back(e.getVariantId());
    if (group.getOrigin() == schema::RolloutGroup::Origin::CORPUS)
      return {"from the corpus", exemplars};
    std::string line = "written in " + std::string(name_of(group.getDraw().getStage())) + " by";
    std::set<std::uint64_t> versions;
    for (const auto run : group.getRollouts()[written.index].getVersions())
      versions.insert(run.getVersion());
    for (const std::uint64_t version : versions) line += " version " + std::to_string(version);
    const auto progress = pool_.progress(written.group);
    // The last version consumes a comparison's groups, but learns nothing from them.
    if (progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED &&
        group.getOrigin() != schema::RolloutGroup::Origin::COMPARISON)
      line += ", trained into version " + std::to_string((*progress)->getTrainedBy());
    if (!exemplars.empty()) line += ", with exemplars";
    return {line, exemplars};
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
  while (!open.empty()) {
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

}  // namespace hone
