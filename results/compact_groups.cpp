#include "results/compact_groups.hpp"

#include <algorithm>

#include "messages/shown_variants.hpp"

namespace hone {
namespace {

class groups_reader {
 public:
  explicit groups_reader(const pool_inspector& pool) : pool_(&pool) {}

  compact_groups read() {
    pool_->db().scan<schema::RolloutGroup>(
        family::groups, "", [&](std::string_view, const record<schema::RolloutGroup>& g) {
          found_.groups.push_back(compact(*g));
          return true;
        });
    read_states();
    // Groups of one millisecond stay in the order of their ids.
    std::stable_sort(found_.groups.begin(), found_.groups.end(),
                     [](const auto& a, const auto& b) { return a.finished_ms < b.finished_ms; });
    return std::move(found_);
  }

 private:
  compact_group compact(const schema::RolloutGroup::Reader& g) {
    const auto draw = g.getDraw();
    compact_group made;
    made.id = group_id(g.getId());
    made.finished_ms = g.getFinishedMs();
    made.policy_version = draw.getPolicyVersion();
    made.place = place_of({task_id(draw.getTaskId()), draw.getDeviceType()});
    made.origin = g.getOrigin();
    made.arm = draw.getArm();
    made.stage = draw.getStage();
    made.scope = scope_of(g);
    const std::vector<variant_id> shown = shown_variants(draw);
    for (const auto exemplar : draw.getExemplars())
      made.best_shown = std::max(made.best_shown, exemplar.getScore());
    if (draw.hasAttempt()) {
      made.turn = draw.getTurn();
      made.attempt_score = draw.getAttempt().getScore();
    }
    made.rollouts.reserve(g.getRollouts().size());
    for (const auto rollout : g.getRollouts()) {
      const variant_id variant(rollout.getVariantId());
      made.rollouts.push_back(
          {variant, std::find(shown.begin(), shown.end(), variant) != shown.end()});
    }
    return made;
  }

  std::uint32_t place_of(const compact_groups::where& where) {
    const auto [known, is_new] =
        indices_.emplace(where, static_cast<std::uint32_t>(found_.places.size()));
    if (is_new) found_.places.push_back(where);
    return known->second;
  }

  // Both families are in the order of the groups' ids.
  void read_states() {
    auto next = found_.groups.begin();
    pool_->db().scan<schema::GroupProgress>(
        family::progress, "",
        [&](std::string_view key, const record<schema::GroupProgress>& progress) {
          const auto id = id_from_key<group_id>(key);
          while (next != found_.groups.end() && next->id < id) ++next;
          if (next != found_.groups.end() && next->id == id) {
            next->state = progress->getState();
            for (const std::uint32_t copy : progress->getCopies()) {
              if (copy < next->rollouts.size()) next->rollouts[copy].is_copy = true;
            }
          }
          return next != found_.groups.end();
        });
  }

  const pool_inspector* pool_;
  compact_groups found_;
  std::map<compact_groups::where, std::uint32_t> indices_;
};

}  // namespace

compact_groups read_compact_groups(const pool_inspector& pool) {
  return groups_reader(pool).read();
}

}  // namespace hone
