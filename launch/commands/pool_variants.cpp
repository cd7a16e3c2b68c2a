#include "launch/commands/pool_variants.hpp"

#include <dtl/dtl.hpp>

#include <iostream>
#include <sstream>
#include <vector>

#include "launch/printing.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "tasks/settings.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// Returns the variant's blocks as a document has them, or why it does not parse.
std::string code_of(const schema::Variant::Reader& v) {
  if (v.getProblem().size() > 0) return "(does not parse: " + text(v.getProblem()) + ")\n";
  return print_code_blocks(parse_settings(text(v.getSettings())), view(v.getCuda()),
                           view(v.getPython()));
}

ordered_json rollouts_to_json(const pool_inspector& pool, const variant_id& id) {
  ordered_json all = ordered_json::array();
  for (const auto& written : pool.rollouts_of(id)) {
    const auto group = pool.group(written.group);
    if (!group || written.index >= (*group)->getRollouts().size()) continue;
    const auto draw = (*group)->getDraw();
    ordered_json exemplars = ordered_json::array();
    for (const auto e : draw.getExemplars())
      exemplars.push_back(
          {{"variant", to_string(variant_id(e.getVariantId()))}, {"speedup", e.getScore()}});
    const auto progress = pool.progress(written.group);
    const bool trained =
        progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED;
    all.push_back(
        {{"rollout", to_string(written.rollout)},
         {"group", to_string(written.group)},
         {"origin", (*group)->getOrigin() == schema::RolloutGroup::Origin::CORPUS   ? "corpus"
                    : (*group)->getOrigin() == schema::RolloutGroup::Origin::POLICY ? "policy"
                                                                                    : "comparison"},
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
         {"written_ms", (*group)->getFinishedMs()},
         {"prompt", text((*group)->getPrompt())},
         {"text", text((*group)->getRollouts()[written.index].getText())}});
  }
  return all;
}

std::vector<std::string> lines_of(const std::string& s) {
  std::vector<std::string> lines;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
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

}  // namespace

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

std::string text(capnp::Text::Reader t) { return std::string(view(t)); }

std::string name_or_id(const pool_inspector& pool, const task_id& id) {
  return pool.task_name(id).value_or(short_id(id));
}

ordered_json variant_to_json(const pool_inspector& pool, const schema::Variant::Reader& v) {
  const std::string task = name_or_id(pool, task_id(v.getTaskId()));
  const variant_id id(v.getId());
  ordered_json evaluations = ordered_json::array();
  for (const auto& e : pool.evaluations_of(id)) {
    ordered_json one = to_json(*e, task);
    one["scope"] = e->getScope();
    evaluations.push_back(std::move(one));
  }
  return {{"variant", to_string(id)},          {"task", task},
          {"settings", text(v.getSettings())}, {"cuda", text(v.getCuda())},
          {"python", text(v.getPython())},     {"problem", text(v.getProblem())},
          {"evaluations", evaluations},        {"rollouts", rollouts_to_json(pool, id)}};
}

std::optional<std::string> document_of(const pool_inspector& pool, const variant_id& id) {
  const auto written = pool.rollouts_of(id);
  for (auto one = written.rbegin(); one != written.rend(); ++one) {
    const auto group = pool.group(one->group);
    if (!group || one->index >= (*group)->getRollouts().size()) continue;
    std::string document = text((*group)->getRollouts()[one->index].getText());
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

nlohmann::ordered_json difference_to_json(const pool_inspector& pool, const variant_id& from,
                                          const variant_id& to) {
  const auto a = *pool.variant(from);
  const auto b = *pool.variant(to);
  return {{"from", variant_to_json(pool, *a)},
          {"to", variant_to_json(pool, *b)},
          {"diff", unified_difference(*a, *b)}};
}

void print_difference(const pool_inspector& pool, const variant_id& from, const variant_id& to) {
  std::cout << "--- " << short_id(from) << scores_of(pool, from) << "\n+++ " << short_id(to)
            << scores_of(pool, to) << "\n"
            << unified_difference(**pool.variant(from), **pool.variant(to));
}

}  // namespace hone
