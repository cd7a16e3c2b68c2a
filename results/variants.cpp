#include "results/variants.hpp"

#include <dtl/dtl.hpp>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <utility>
#include <vector>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "tasks/settings.hpp"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// Returns the variant's blocks as a document has them, or why it does not parse.
std::string code_of(const schema::Variant::Reader& v) {
  if (v.getProblem().size() > 0) return "(does not parse: " + text(v.getProblem()) + ")\n";
  return printed_blocks(v);
}

// Where the rollouts of a variant are, the newest first.
struct rollout_list {
  std::size_t count = 0;
  std::vector<placed_rollout> newest;
};

rollout_list newest_rollouts(const pool_inspector& pool, const variant_id& id, std::size_t limit) {
  rollout_list found;
  const auto is_newer = [](const auto& a, const auto& b) {
    return a.group->getFinishedMs() > b.group->getFinishedMs();
  };
  const auto keep_newest = [&] {
    std::stable_sort(found.newest.begin(), found.newest.end(), is_newer);
    found.newest.resize(std::min(limit, found.newest.size()));
  };
  for (const auto& written : pool.rollouts_of(id)) {
    auto rollout = find_rollout(pool, written);
    if (!rollout) continue;
    ++found.count;
    found.newest.push_back(*std::move(rollout));
    if (found.newest.size() / 4 > limit) keep_newest();
  }
  keep_newest();
  return found;
}

void add_tokens(ordered_json& to, const schema::Rollout::Reader& rollout) {
  ordered_json tokens = ordered_json::array();
  for (const std::uint32_t token : rollout.getTokens()) tokens.push_back(token);
  ordered_json logs = ordered_json::array();
  for (const float log : rollout.getLogProbabilities()) logs.push_back(log);
  to["tokens"] = tokens;
  to["log_probabilities"] = logs;
}

ordered_json rollouts_to_json(const pool_inspector& pool, const rollout_list& list,
                              bool has_tokens) {
  ordered_json all = ordered_json::array();
  for (const placed_rollout& placed : list.newest) {
    const auto& group = placed.group;
    const auto draw = group->getDraw();
    ordered_json exemplars = ordered_json::array();
    for (const auto e : draw.getExemplars())
      exemplars.push_back(
          {{"variant", to_string(variant_id(e.getVariantId()))}, {"speedup", e.getScore()}});
    const auto progress = pool.progress(placed.where.group);
    const bool trained =
        progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED;
    const auto rollout = placed.rollout();
    ordered_json versions = ordered_json::array();
    for (const auto run : rollout.getVersions())
      versions.push_back({{"version", run.getVersion()}, {"tokens", run.getTokens()}});
    ordered_json one = {
        {"rollout", to_string(placed.where.rollout)},
        {"group", to_string(placed.where.group)},
        {"index", placed.where.index},
        {"origin", name_of(group->getOrigin())},
        {"stage", name_of(draw.getStage())},
        {"device_type", text(draw.getDeviceType())},
        {"arm", name_of(draw.getArm())},
        {"turn", draw.getTurn() + 1},
        {"attempt",
         draw.hasAttempt()
             ? ordered_json({{"variant", to_string(variant_id(draw.getAttempt().getVariantId()))},
                             {"outcome", text(draw.getAttempt().getOutcome())},
                             {"speedup", draw.getAttempt().getScore()}})
             : ordered_json(nullptr)},
        {"policy_version", draw.getPolicyVersion()},
        {"exemplars", exemplars},
        {"trained_into_version",
         trained ? ordered_json((*progress)->getTrainedBy()) : ordered_json(nullptr)},
        {"dropped", progress && (*progress)->getState() == schema::GroupProgress::State::DROPPED},
        {"written_ms", group->getFinishedMs()},
        {"draw_seed", std::to_string(draw.getSeed())},
        {"population", draw.getPopulation()},
        {"truncated", rollout.getTruncated()},
        {"versions", versions},
        {"prompt", text(group->getPrompt())},
        {"text", text(rollout.getText())}};
    if (has_tokens) add_tokens(one, rollout);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::string> lines_of(const std::string& s) {
  std::vector<std::string> lines;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string scores_text(const pool_inspector& pool, const schema::Variant::Reader& v) {
  const variant_id id(v.getId());
  const std::string scores = scores_of(pool, id);
  return scores.empty() && id == variant_id(reference_of(pool, task_id(v.getTaskId()))->getId())
             ? "  the reference"
             : scores;
}

}  // namespace

std::string printed_blocks(const schema::Variant::Reader& v) {
  settings options;
  std::string unread;
  try {
    options = parse_settings(view(v.getSettings()));
  } catch (const std::exception&) {
    unread = text(v.getSettings()) + "\n";  // of a later version, or damaged
  }
  return unread + print_code_blocks(options, view(v.getCuda()), view(v.getPython()));
}

std::string unified_difference(const schema::Variant::Reader& from,
                               const schema::Variant::Reader& to) {
  dtl::Diff<std::string> difference(lines_of(code_of(from)), lines_of(code_of(to)));
  difference.compose();
  difference.composeUnifiedHunks();
  std::ostringstream hunks;
  difference.printUnifiedFormat(hunks);
  return hunks.str();
}

record<schema::Variant> reference_of(const pool_inspector& pool, const task_id& id) {
  const auto stored = pool.db().get<schema::Task>(family::tasks, key_of(id));
  if (!stored) throw pool_error("the pool has no task " + short_id(id));
  const task parsed = from_record(**stored);
  variant_document reference;
  reference.python = parsed.reference;
  return make_variant(parsed.id, print_variant_document(reference));
}

std::string scores_of(const pool_inspector& pool, const variant_id& id) {
  std::string scores;
  for (const auto& e : pool.evaluations_of(id)) {
    if (e->getScope() == run_scope)
      scores +=
          "  " +
          (has_score(*e) ? fixed(e->getScore(), 2) + "x" : std::string(name_of(e->getOutcome()))) +
          " on " + text(e->getDeviceType());
  }
  return scores;
}

std::optional<placed_rollout> find_rollout(const pool_inspector& pool,
                                           const pool_inspector::written_as& where) {
  auto group = pool.group(where.group);
  if (!group || where.index >= (*group)->getRollouts().size()) return std::nullopt;
  return placed_rollout{where, *std::move(group)};
}

std::optional<placed_rollout> first_rollout(const pool_inspector& pool, const variant_id& id) {
  std::optional<placed_rollout> first;
  for (const auto& written : pool.rollouts_of(id)) {
    auto rollout = find_rollout(pool, written);
    if (rollout && (!first || rollout->group->getFinishedMs() < first->group->getFinishedMs()))
      first = std::move(rollout);
  }
  return first;
}

std::string name_or_id(const pool_inspector& pool, const task_id& id) {
  return pool.task_name(id).value_or(short_id(id));
}

ordered_json variant_to_json(const pool_inspector& pool, const schema::Variant::Reader& v,
                             std::size_t max_rollouts, bool has_tokens) {
  const std::string task = name_or_id(pool, task_id(v.getTaskId()));
  const variant_id id(v.getId());
  ordered_json evaluations = ordered_json::array();
  for (const auto& e : pool.evaluations_of(id)) evaluations.push_back(to_json(*e, task));
  const rollout_list list = newest_rollouts(pool, id, max_rollouts);
  return {{"variant", to_string(id)},
          {"task", task},
          {"settings", text(v.getSettings())},
          {"cuda", text(v.getCuda())},
          {"python", text(v.getPython())},
          {"problem", text(v.getProblem())},
          {"evaluations", evaluations},
          {"rollout_count", list.count},
          {"rollouts", rollouts_to_json(pool, list, has_tokens)}};
}

std::optional<std::string> document_of(const pool_inspector& pool, const variant_id& id) {
  const auto written = pool.rollouts_of(id);
  for (auto one = written.rbegin(); one != written.rend(); ++one) {
    const auto rollout = find_rollout(pool, *one);
    if (!rollout) continue;
    std::string document = text(rollout->rollout().getText());
    if (!document.empty()) return document;
  }
  return std::nullopt;
}

void print_variant(const pool_inspector& pool, const variant_id& id,
                   const schema::Variant::Reader& v) {
  // Several documents may hold one program. One of them is shown, with its prose.
  const auto document = document_of(pool, id);
  std::cout << "variant " << to_string(id) << " of " << name_or_id(pool, task_id(v.getTaskId()))
            << ", " << counted(pool.rollouts_of(id).size(), "rollout") << "\n\n"
            << (document ? *document : code_of(v)) << "\n";
  for (const auto& e : pool.evaluations_of(id)) {
    std::cout << text(e->getDeviceType())
              << (is_comparison(e->getScope()) ? " (judged afresh for a comparison)" : "")
              << (is_screening(e->getScope()) ? " (screened)" : "") << ": " << describe(*e) << "\n";
    for (const auto m : e->getMeasurements())
      std::cout << "    measured " << fixed(m.getScoreRaw(), 3) << "x ["
                << fixed(m.getIntervalLow(), 3) << ", " << fixed(m.getIntervalHigh(), 3) << "] on "
                << text(m.getNode()) << " " << text(m.getDevice()) << ", seed " << m.getSeed()
                << "\n";
  }
}

nlohmann::ordered_json difference_to_json(const pool_inspector& pool,
                                          const schema::Variant::Reader& from,
                                          const schema::Variant::Reader& to) {
  return {{"from", variant_to_json(pool, from)},
          {"to", variant_to_json(pool, to)},
          {"diff", unified_difference(from, to)}};
}

void print_difference(const pool_inspector& pool, const schema::Variant::Reader& from,
                      const schema::Variant::Reader& to) {
  std::cout << "--- " << short_id(variant_id(from.getId())) << scores_text(pool, from) << "\n+++ "
            << short_id(variant_id(to.getId())) << scores_text(pool, to) << "\n"
            << unified_difference(from, to);
}

}  // namespace hone
