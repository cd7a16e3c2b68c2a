// Finds the rollouts of a group that copy what their prompt shows.
#include <set>

#include "messages/names.hpp"
#include "messages/shown_variants.hpp"
#include "storage/pool.hpp"

namespace hone {

std::optional<program_id> pool::program_of(const variant_id& variant,
                                           const schema::RolloutGroup::Reader& group) const {
  for (const std::uint32_t scope : {scope_of(group), run_scope}) {
    const auto known =
        ledger_.find({variant, group.getDraw().getDeviceType(), options_.judge_version, scope});
    if (known && (*known)->hasProgramId()) return program_id((*known)->getProgramId());
  }
  return std::nullopt;
}

std::vector<std::uint32_t> pool::find_copies(
    const schema::RolloutGroup::Reader& group,
    const std::vector<record<schema::Evaluation>>& evaluated) const {
  const std::vector<variant_id> shown = shown_variants(group.getDraw());
  if (shown.empty()) return {};
  std::set<program_id> programs;
  for (const variant_id& variant : shown) {
    if (const auto program = program_of(variant, group)) programs.insert(*program);
  }
  std::set<variant_id> copied(shown.begin(), shown.end());
  for (const auto& known : evaluated) {
    if (known->hasProgramId() && programs.contains(program_id(known->getProgramId())))
      copied.insert(variant_id(known->getVariantId()));
  }
  std::vector<std::uint32_t> copies;
  for (std::uint32_t i = 0; i < group.getRollouts().size(); ++i) {
    if (copied.contains(variant_id(group.getRollouts()[i].getVariantId()))) copies.push_back(i);
  }
  return copies;
}

void pool::mark_copies(const group_id& group,
                       capnp::List<schema::ScoredGroup::Result>::Builder results) const {
  const auto progress = db_.get<schema::GroupProgress>(family::progress, key_of(group));
  if (!progress) return;
  for (const std::uint32_t copy : (*progress)->getCopies()) {
    if (copy < results.size()) results[copy].setIsCopy(true);
  }
}

}  // namespace hone
