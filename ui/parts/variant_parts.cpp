#include "ui/parts/variant_parts.hpp"

#include <re2/re2.h>

#include <variant>
#include <vector>

#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "tasks/variant_document.hpp"
#include "ui/code/highlight.hpp"
#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/plots/speedup_plots.hpp"

namespace hone::parts {
namespace {

using html::element;

constexpr std::size_t max_prose_bytes = 4000;
constexpr std::size_t max_settings_bytes = 16U << 10U;  // of HTML

// Returns the lines of a compiler's message about a block, "BLOCK:LINE: text".
std::vector<line_message> messages_about(const std::string& block, const std::string& message) {
  static const re2::RE2 pattern(R"((?m)^\s*(cuda|python):(\d+)(?::\d+)?:\s*(.*)$)");
  constexpr std::size_t max_messages = 200;
  std::vector<line_message> found;
  re2::StringPiece rest(message);
  std::string of;
  std::string what;
  std::size_t line = 0;
  while (found.size() < max_messages &&
         re2::RE2::FindAndConsume(&rest, pattern, &of, &line, &what)) {
    if (of == block) found.push_back({line, what});
  }
  return found;
}

element labeled_code(std::string_view label, std::string_view source, const code_options& options) {
  return {"div", {}, {element("h4", {}, {html::text(label)}), highlighted_code(source, options)}};
}

}  // namespace

element code_of(const schema::Variant::Reader& v, const std::string& prefix, std::size_t max_lines,
                const std::string& message) {
  element made;
  if (v.getSettings().size() > 0) {
    made.add(paragraph("Settings"));
    made.add(prose(view(v.getSettings()), max_settings_bytes));
  }
  if (v.getCuda().size() > 0)
    made.add(labeled_code(
        "CUDA", view(v.getCuda()),
        {code_language::cuda, prefix + "c", max_lines, messages_about("cuda", message)}));
  if (v.getPython().size() > 0)
    made.add(labeled_code(
        "Host program", view(v.getPython()),
        {code_language::python, prefix + "p", max_lines, messages_about("python", message)}));
  return made;
}

std::string blocks_of(const schema::Variant::Reader& v) { return printed_blocks(v); }

std::string mean_log_text(const schema::Rollout::Reader& rollout) {
  const auto logs = rollout.getLogProbabilities();
  double sum = 0;
  for (const float log : logs) sum += log;
  return logs.size() > 0 ? number_text(sum / logs.size()) : "-";
}

element measurements_of(const schema::Evaluation::Reader& e) {
  std::vector<plots::measurement_row> rows;
  for (const auto m : e.getMeasurements()) {
    if (m.getOutcome() != Outcome::OK) continue;
    rows.push_back({text(m.getNode()) + " " + text(m.getDevice()), m.getScoreRaw(),
                    m.getIntervalLow(), m.getIntervalHigh()});
  }
  if (rows.empty())
    return paragraph(counted(e.getMeasurements().size(), "measurement") + " without a speed-up.");
  return plots::figure(plots::measurements("Measurements of this variant", rows),
                       "One row per measurement, with its 95 % interval.");
}

ancestry ancestry_of(const pool_inspector& pool, const variant_id& id) {
  ancestry found;
  const auto first = first_rollout(pool, id);
  if (!first) return found;
  const auto draw = first->group->getDraw();
  if (first->group->getOrigin() == schema::RolloutGroup::Origin::CORPUS) {
    found.sentence = "A document of the corpus.";
  } else {
    found.sentence = "Written first in the stage " + std::string(name_of(draw.getStage())) +
                     " by version " + std::to_string(draw.getPolicyVersion()) +
                     " of the policy, whose prompt showed " +
                     counted(draw.getExemplars().size(), "exemplar") + ".";
  }
  for (const auto exemplar : draw.getExemplars()) {
    if (exemplar.getScore() < found.parent_speedup) continue;
    found.parent_speedup = exemplar.getScore();
    found.parent = pool.variant(variant_id(exemplar.getVariantId()));
  }
  const auto document = parse_variant_document(view(first->rollout().getText()));
  if (const auto* parsed = std::get_if<variant_document>(&document)) {
    found.prose = parsed->analysis + (parsed->analysis.empty() ? "" : "\n\n") + parsed->design;
    found.prose = html::first_bytes(found.prose, max_prose_bytes);
  }
  return found;
}

}  // namespace hone::parts
