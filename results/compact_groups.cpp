#include "results/compact_groups.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "messages/shown_variants.hpp"

namespace hone {
namespace {

static_assert(sizeof(compact_groups::rollout) == 4);

// Most groups have fewer rollouts. Memory that is reserved and not used takes no room.
constexpr std::size_t usual_rollouts = 64;

class groups_reader {
 public:
  explicit groups_reader(const pool_inspector& pool) : pool_(&pool) {}

  compact_groups read() {
    reserve();
    pool_->db().scan_keys(family::variants, "", [&](std::string_view key) {
      found_.variants.push_back(id_from_key<variant_id>(key));
      return true;
    });
    std::sort(found_.variants.begin(), found_.variants.end());
    pool_->db().scan<schema::RolloutGroup>(
        family::groups, "", [&](std::string_view, const record<schema::RolloutGroup>& g) {
          ids_.emplace_back(g->getId());
          found_.groups.push_back(compact(*g));
          return true;
        });
    read_states();
    // Groups of one millisecond stay in the order of their ids, as their rollouts are.
    std::sort(found_.groups.begin(), found_.groups.end(), [](const auto& a, const auto& b) {
      return std::tie(a.finished_ms, a.first_rollout) < std::tie(b.finished_ms, b.first_rollout);
    });
    return std::move(found_);
  }

 private:
  // Lists of millions that grow would take twice the memory for a moment.
  void reserve() {
    const std::size_t groups = count(family::groups);
    found_.variants.reserve(count(family::variants));
    found_.groups.reserve(groups);
    found_.rollouts.reserve(groups * usual_rollouts);
    ids_.reserve(groups);
  }

  std::size_t count(family which) const {
    std::size_t entries = 0;
    pool_->db().scan_keys(which, "", [&](std::string_view) { return ++entries > 0; });
    return entries;
  }

  compact_group compact(const schema::RolloutGroup::Reader& g) {
    const auto draw = g.getDraw();
    compact_group made;
    made.finished_ms = g.getFinishedMs();
    made.policy_version = static_cast<std::uint32_t>(draw.getPolicyVersion());
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
    made.first_rollout = static_cast<std::uint32_t>(found_.rollouts.size());
    made.rollouts = g.getRollouts().size();
    for (const auto rollout : g.getRollouts()) {
      const variant_id variant(rollout.getVariantId());
      const bool is_copy = std::find(shown.begin(), shown.end(), variant) != shown.end();
      found_.rollouts.push_back({index_of(found_.variants, variant), is_copy});
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
    std::size_t next = 0;
    pool_->db().scan<schema::GroupProgress>(
        family::progress, "",
        [&](std::string_view key, const record<schema::GroupProgress>& progress) {
          const auto id = id_from_key<group_id>(key);
          while (next < ids_.size() && ids_[next] < id) ++next;
          if (next < ids_.size() && ids_[next] == id) {
            compact_group& group = found_.groups[next];
            group.state = progress->getState();
            for (const std::uint32_t copy : progress->getCopies()) {
              if (copy < group.rollouts) found_.rollouts[group.first_rollout + copy].is_copy = true;
            }
          }
          return next < ids_.size();
        });
  }

  const pool_inspector* pool_;
  compact_groups found_;
  std::vector<group_id> ids_;  // of found_.groups
  std::map<compact_groups::where, std::uint32_t> indices_;
};

}  // namespace

std::uint32_t index_of(const std::vector<variant_id>& variants, const variant_id& id) {
  const auto at = std::lower_bound(variants.begin(), variants.end(), id);
  if (at == variants.end() || *at != id) return compact_groups::no_variant;
  return static_cast<std::uint32_t>(at - variants.begin());
}

compact_groups read_compact_groups(const pool_inspector& pool) {
  return groups_reader(pool).read();
}

}  // namespace hone
