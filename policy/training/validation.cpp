#include "policy/training/validation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "messages/ids.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

struct answers {
  double all = 0;
  double ok = 0;
  double share_ok() const { return all > 0 ? ok / all : 0; }
};

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

constexpr const char* tier_prefix = "validation_tier_";

}  // namespace

curriculum::numbers describe_validation(const schema::TrainingBatch::Reader& batch,
                                        const task_table& tasks) {
  answers all;
  std::map<std::uint32_t, answers> tiers;
  double copies = 0;
  double logs = 0;
  double version = 0;
  for (const auto scored : batch.getGroups()) {
    const auto group = scored.getGroup();
    version = std::max(version, static_cast<double>(group.getDraw().getComparedAt()));
    const auto task = tasks.find(task_id(group.getDraw().getTaskId()));
    for (unsigned i = 0; i < group.getRollouts().size(); ++i) {
      const auto result = scored.getResults()[i];
      if (is_inconclusive(result.getOutcome())) continue;
      const bool is_ok = result.getOutcome() == Outcome::OK;
      const auto count = [&](answers& of) {
        ++of.all;
        of.ok += is_ok ? 1 : 0;
      };
      count(all);
      if (task != nullptr && task->tier > 0) count(tiers[task->tier]);
      copies += result.getIsCopy() ? 1 : 0;
      if (is_ok && result.getScore() > 0) logs += std::log(result.getScore());
    }
  }
  curriculum::numbers n = {{"validation_version", version},
                           {"validation_answers", all.all},
                           {"validation_ok", all.share_ok()},
                           {"validation_log_speedup", all.ok > 0 ? logs / all.ok : 0},
                           {"validation_copies", all.all > 0 ? copies / all.all : 0}};
  for (const auto& [tier, its] : tiers)
    n[tier_prefix + std::to_string(tier) + "_ok"] = its.share_ok();
  return n;
}

std::string validation_text(const curriculum::numbers& of) {
  const auto number = [&](const char* name) {
    const auto found = of.find(name);
    return found == of.end() ? 0 : found->second;
  };
  std::string text = "held-out tasks at version " +
                     std::to_string(static_cast<std::uint64_t>(number("validation_version"))) +
                     ": " + percent(number("validation_ok")) + " of " +
                     std::to_string(static_cast<std::uint64_t>(number("validation_answers"))) +
                     " greedy answers are ok";
  for (const auto& [name, share] : of) {
    const std::string prefix = tier_prefix;
    if (!name.starts_with(prefix)) continue;
    text += ", tier " + name.substr(prefix.size(), name.rfind('_') - prefix.size()) + " " +
            percent(share);
  }
  return text;
}

}  // namespace hone
