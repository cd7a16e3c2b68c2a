#include <algorithm>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "ui/pages/page.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t max_rows = 1000;

ordered_json rows_to_json(const snapshot& of, const page_request& request) {
  const std::string task = request.value("task");
  const std::string on = request.value("on");
  const std::string outcome = request.value("outcome");
  const std::size_t from = request.number("from", 0, of.rows.rows.size());
  const std::size_t limit = request.number("limit", 100, max_rows);
  ordered_json rows = ordered_json::array();
  std::size_t found = 0;
  for (const catalogue::row& row : of.rows.rows) {
    const auto& place = of.rows.places[row.place];
    if ((!task.empty() && place.name != task) || (!on.empty() && place.device_type != on) ||
        (!outcome.empty() && name_of(row.outcome) != outcome))
      continue;
    if (found++ < from || rows.size() == limit) continue;
    rows.push_back(
        {{"variant", to_string(row.variant)},
         {"task", place.name},
         {"device_type", place.device_type},
         {"outcome", name_of(row.outcome)},
         {"message_class", of.rows.failures[row.failure]},
         {"speedup", row.speedup > 0 ? ordered_json(row.speedup) : ordered_json(nullptr)},
         {"measurement_count", row.measurements},
         {"policy_version", row.version},
         {"closed_ms", row.closed_ms}});
  }
  return {{"count", found}, {"from", from}, {"variants", rows}};
}

ordered_json group_to_json(const snapshot& of, const std::string& id) {
  const auto group = group_named(of.pool, id);
  ordered_json variants = ordered_json::array();
  for (const auto rollout : group->getRollouts())
    variants.push_back(to_string(variant_id(rollout.getVariantId())));
  return {{"group", id},
          {"task", name_or_id(of.pool, task_id(group->getDraw().getTaskId()))},
          {"device_type", text(group->getDraw().getDeviceType())},
          {"stage", name_of(group->getDraw().getStage())},
          {"origin", name_of(group->getOrigin())},
          {"policy_version", group->getDraw().getPolicyVersion()},
          {"draw_seed", std::to_string(group->getDraw().getSeed())},
          {"prompt", text(group->getPrompt())},
          {"variants", variants}};
}

}  // namespace

ordered_json api_answer(const snapshot& of, const page_request& request, std::string_view state) {
  const auto& segments = request.segments;
  const std::string what = segments.empty() ? "" : segments[0];
  if (what == "changes") return {{"stamp", of.stamp}, {"state", state}};
  if (what == "report") return of.numbers;
  if (what == "variants") return rows_to_json(of, request);
  if (what == "variant" && segments.size() == 2)
    return variant_to_json(of.pool, *variant_named(of.pool, segments[1]), max_rollouts_shown, true);
  if (what == "descendants" && segments.size() == 2)
    return descendants_to_json(of.pool, variant_id(variant_named(of.pool, segments[1])->getId()));
  if (what == "group" && segments.size() == 2) return group_to_json(of, segments[1]);
  if (what == "diff" && segments.size() == 3)
    return difference_to_json(of.pool, *variant_named(of.pool, segments[1]),
                              *variant_named(of.pool, segments[2]));
  throw not_found(
      "/api/ has changes, report, variants, variant/ID, descendants/ID, group/ID and "
      "diff/ID/ID");
}

}  // namespace hone
