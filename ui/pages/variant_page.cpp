#include <algorithm>
#include <cmath>
#include <map>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/parts/variant_parts.hpp"
#include "ui/plots/speedup_plots.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t max_code_lines = 2000;
constexpr std::size_t max_message_bytes = 64U << 10U;  // of HTML
constexpr std::size_t max_document_html_bytes = 1U << 20U;
constexpr std::size_t max_kernels = 500;
constexpr std::size_t max_columns = 120;  // of a name
constexpr std::size_t max_relatives = 30;

element kernels_table(const schema::Measurement::Reader& m) {
  std::vector<plots::table_row> rows;
  for (const auto c : m.getCases()) {
    for (const auto k : c.getKernels()) {
      if (rows.size() == max_kernels) break;
      rows.push_back({{html::shortened(view(k.getName()), max_columns),
                       html::shortened(view(c.getSizes()), max_columns), count_text(k.getBlocks()),
                       std::to_string(k.getThreads()), std::to_string(k.getRegisters()),
                       std::to_string(k.getStaticSharedBytes() + k.getDynamicSharedBytes()),
                       std::to_string(k.getSpilledBytes()), percent_text(k.getOccupancy())},
                      std::nullopt});
    }
  }
  if (rows.empty()) return {};
  return parts::folded("Kernels",
                       {plots::wide_table({"kernel", "sizes", "blocks", "threads", "registers",
                                           "shared bytes", "spilled bytes", "occupancy"},
                                          rows, 2)});
}

element cases_table(const schema::Measurement::Reader& m) {
  std::vector<plots::table_row> rows;
  for (const auto c : m.getCases()) {
    std::string over;
    for (const auto b : c.getBaselines()) {
      if (view(b.getName()) != "eager" && c.getCandidateUs() > 0)
        over += (over.empty() ? "" : ", ") + text(b.getName()) + " " +
                speedup_text(b.getUs() / c.getCandidateUs());
    }
    const double us = c.getCandidateUs();
    rows.push_back(
        {{html::shortened(view(c.getSizes()), max_columns),
          over.empty() ? "-" : html::shortened(over, max_columns),
          duration_text(c.getReferenceUs()), duration_text(us), speedup_text(c.getSpeedup()),
          speedup_text(c.getIntervalLow()) + " to " + speedup_text(c.getIntervalHigh()),
          std::to_string(c.getRounds()),
          // Bytes per microsecond are megabytes per second.
          c.getBytes() > 0 && us > 0
              ? number_text(static_cast<double>(c.getBytes()) / us / 1e3) + " GB/s"
              : "-",
          c.getFlops() > 0 && us > 0
              ? number_text(static_cast<double>(c.getFlops()) / us / 1e6) + " TFLOP/s"
              : "-"},
         std::nullopt});
  }
  if (rows.empty()) return {};
  return plots::wide_table({"sizes", "over baselines", "reference", "variant", "speed-up",
                            "95 % interval", "rounds", "inputs and outputs", "products"},
                           rows, 2);
}

std::string command_for(const schema::Evaluation::Reader& e, const std::string& task) {
  return "hone pool show --pool RUN " + short_id(variant_id(e.getVariantId())) +
         "   # its document; then\nhone eval " +
         (e.hasVerdict() ? "--seed " + std::to_string(e.getVerdict().getSeed()) + " " : "") + task +
         " document.md";
}

element evaluation_section(const schema::Evaluation::Reader& e, const std::string& task) {
  const std::string scope = e.getScope() == run_scope ? "" : " (" + scope_text(e.getScope()) + ")";
  std::vector<element> content;
  const std::string outcome(name_of(e.getOutcome()));
  content.push_back(
      parts::paragraph(outcome + (e.getKind().size() > 0 ? " (" + text(e.getKind()) + ")" : "") +
                       (has_score(e) ? ": " + headline_text(e) : "")));
  if (e.getMessage().size() > 0)
    content.push_back(parts::prose(view(e.getMessage()), max_message_bytes));
  if (e.getMeasurements().size() > 0) {
    content.push_back(parts::measurements_of(e));
    content.push_back(cases_table(measurement_of_score(e)));
    content.push_back(kernels_table(measurement_of_score(e)));
  }
  const element command("pre", {}, {html::text(command_for(e, task))});
  const auto verdict = e.getVerdict();
  if (!e.hasVerdict()) {
    content.push_back(parts::folded(
        "How to repeat it", {parts::paragraph("It ended before it was verified."), command}));
    return parts::section(text(e.getDeviceType()) + scope, std::move(content));
  }
  content.push_back(parts::folded(
      "How it was verified",
      {parts::paragraph(std::to_string(verdict.getRounds()) +
                        " rounds of inputs passed; the "
                        "largest error is " +
                        percent_text(verdict.getWorstElement()) +
                        " of what is allowed for an element; verified in " +
                        duration_text(verdict.getVerifyMs() * 1e3) + ", compiled in " +
                        duration_text(e.getCompileMs() * 1e3) + ", by judge version " +
                        std::to_string(e.getJudgeVersion()) + "."),
       command}));
  return parts::section(text(e.getDeviceType()) + scope, std::move(content));
}

// A relative of the variant in a plot of versions and speed-ups.
struct relative {
  variant_id id;
  std::string kind;
};

std::vector<relative> relatives_of(const snapshot& of, const variant_id& id) {
  std::vector<relative> all;
  if (const auto first = first_rollout(of.pool, id)) {
    for (const auto exemplar : first->group->getDraw().getExemplars())
      all.push_back({variant_id(exemplar.getVariantId()), "shown to it"});
  }
  std::size_t later = 0;
  for (const descendant& d : descendants_of(of.pool, id, 200)) {
    if (later++ == max_relatives) break;
    all.push_back({d.variant, "of a prompt that showed it"});
  }
  return all;
}

// Returns the outcome of a variant that only a comparison has judged.
std::string outcome_in_comparison(const snapshot& of, const variant_id& id) {
  const auto all = of.pool.evaluations_of(id);
  return all.empty() ? "-" : std::string(name_of(all.back()->getOutcome())) + " (comparison)";
}

element lineage_section(const snapshot& of, const variant_id& id) {
  const auto relatives = relatives_of(of, id);
  if (relatives.empty()) return {};
  std::map<variant_id, const catalogue::row*> rows;
  for (const relative& one : relatives) rows[one.id] = nullptr;
  rows[id] = nullptr;
  for (const catalogue::row& row : of.rows.rows) {
    if (const auto found = rows.find(row.variant); found != rows.end()) found->second = &row;
  }
  std::vector<plots::variant_point> points;
  std::vector<plots::table_row> table;
  for (const auto& [variant, row] : rows) {
    if (row == nullptr) continue;
    points.push_back({static_cast<double>(row->version), row->speedup,
                      static_cast<std::size_t>(row->outcome),
                      row->from == catalogue::origin::corpus ? plots::variant_origin::corpus
                                                             : plots::variant_origin::generated,
                      short_id(variant) + (variant == id ? ", this variant" : ""),
                      parts::variant_link(variant)});
  }
  for (const relative& one : relatives) {
    const auto* row = rows.at(one.id);
    table.push_back(
        {{short_id(one.id), one.kind,
          row != nullptr ? std::string(name_of(row->outcome)) : outcome_in_comparison(of, one.id),
          row != nullptr && row->speedup > 0 ? speedup_text(row->speedup) : "-"},
         parts::variant_link(one.id)});
  }
  return parts::section(
      "Lineage",
      {plots::figure(
           plots::variant_scatter("The variant, what it was shown, and what followed", points),
           "Versions of the policy from left to right. Exemplars of its prompt, and the "
           "fastest variants of prompts that showed it."),
       plots::wide_table({"variant", "relation", "outcome", "speed-up"}, table, 3)});
}

element rollouts_section(const snapshot& of, const variant_id& id) {
  const auto all = of.pool.rollouts_of(id);
  std::vector<plots::table_row> rows;
  for (std::size_t i = 0; i < std::min(all.size(), max_rollouts_shown); ++i) {
    const auto placed = find_rollout(of.pool, all[i]);
    if (!placed) continue;
    const auto draw = placed->group->getDraw();
    const auto rollout = placed->rollout();
    const auto progress = of.pool.progress(all[i].group);
    const bool is_trained =
        progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED;
    rows.push_back(
        {{short_id(all[i].group), std::string(name_of(placed->group->getOrigin())),
          std::string(name_of(draw.getStage())), std::to_string(draw.getPolicyVersion()),
          is_trained ? std::to_string((*progress)->getTrainedBy()) : "-",
          count_text(draw.getExemplars().size()), count_text(rollout.getLogProbabilities().size()),
          parts::mean_log_text(rollout)},
         html::url("/group").segment(to_string(all[i].group))});
  }
  std::vector<element> content = {
      plots::wide_table({"group", "origin", "stage", "version", "trained into", "exemplars",
                         "tokens", "mean log-probability"},
                        rows, 3)};
  if (all.size() > max_rollouts_shown)
    content.push_back(parts::paragraph("The first " + std::to_string(max_rollouts_shown) + " of " +
                                       count_text(all.size()) + " rollouts."));
  return parts::section("Rollouts that wrote it", std::move(content));
}

}  // namespace

page variant_page(const snapshot& of, const page_request& request) {
  if (request.segments.size() != 1) throw not_found("a variant's page is /variant/ID");
  const auto v = variant_named(of.pool, request.segments[0]);
  const variant_id id(v->getId());
  const std::string task = name_or_id(of.pool, task_id(v->getTaskId()));
  const auto evaluations = of.pool.evaluations_of(id);
  std::string message;
  for (const auto& e : evaluations) {
    if (e->getMessage().size() > 0 && message.empty())
      message = html::first_written(view(e->getMessage()), max_message_bytes);
  }
  const parts::ancestry from = parts::ancestry_of(of.pool, id);
  element body;
  element links("p", {}, {});
  links.add({"a", {html::href(html::url("/task").segment(task))}, {html::text("Task " + task)}});
  links.add(html::text(" · "));
  links.add({"a",
             {html::href(html::url("/diff").segment("reference").segment(to_string(id)))},
             {html::text("Diff to the reference")}});
  if (from.parent) {
    links.add(html::text(" · "));
    links.add({"a",
               {html::href(html::url("/diff")
                               .segment(to_string(variant_id((*from.parent)->getId())))
                               .segment(to_string(id)))},
               {html::text("Diff to the fastest exemplar shown")}});
  }
  body.add(std::move(links));
  body.add({"form",
            {html::action(html::url("/compare"))},
            {element("label", {{"for", "with"}}, {html::text("Compare with the variant ")}),
             element("input", {{"id", "with"}, {"name", "before"}, {"maxlength", "40"}}),
             element("input", {{"type", "hidden"}, {"name", "after"}, {"value", to_string(id)}}),
             element("button", {{"type", "submit"}}, {html::text("Compare")})}});
  if (!from.sentence.empty()) body.add(parts::paragraph(from.sentence));
  if (v->getProblem().size() > 0) {
    body.add(parts::paragraph("The document is no program:"));
    body.add(parts::prose(view(v->getProblem()), max_message_bytes));
    if (const auto document = document_of(of.pool, id))
      body.add(parts::prose(*document, max_document_html_bytes));
  }
  for (const auto& e : evaluations) body.add(evaluation_section(*e, task));
  if (v->getProblem().size() == 0)
    body.add(parts::section("Code", {parts::code_of(*v, "v", max_code_lines, message)}));
  if (!from.prose.empty())
    body.add(
        parts::section("Analysis and design of its first document", {parts::prose(from.prose)}));
  body.add(lineage_section(of, id));
  body.add(rollouts_section(of, id));
  return {"Variant " + short_id(id) + " of " + task, std::move(body)};
}

}  // namespace hone
