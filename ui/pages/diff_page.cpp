#include "messages/names.hpp"
#include "results/variants.hpp"
#include "ui/code/diff.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/parts/variant_parts.hpp"
#include "ui/plots/plot.hpp"

namespace hone {
namespace {

using html::element;

element name_of_side(const snapshot& of, const schema::Variant::Reader& v, bool is_reference) {
  const variant_id id(v.getId());
  if (is_reference) return {"span", {}, {html::text("the reference")}};
  return {"span",
          {},
          {element("a", {html::href(parts::variant_link(id))}, {html::text(short_id(id))}),
           html::text(scores_of(of.pool, id))}};
}

}  // namespace

page diff_page(const snapshot& of, const page_request& request) {
  if (request.segments.size() != 2) throw not_found("a diff's page is /diff/ID/ID");
  constexpr std::string_view reference = "reference";
  const bool is_from_reference = request.segments[0] == reference;
  const bool is_to_reference = request.segments[1] == reference;
  if (is_from_reference && is_to_reference) throw not_found("a diff's page is /diff/ID/ID");
  const auto named = variant_named(of.pool, request.segments[is_from_reference ? 1 : 0]);
  const auto other = is_from_reference || is_to_reference
                         ? reference_of(of.pool, task_id(named->getTaskId()))
                         : variant_named(of.pool, request.segments[1]);
  const auto& before = is_from_reference ? other : named;
  const auto& after = is_from_reference ? named : other;
  const bool is_unified = request.value("view") == "unified";
  element body;
  body.add({"p",
            {},
            {html::text("From "), name_of_side(of, *before, is_from_reference), html::text(" to "),
             name_of_side(of, *after, is_to_reference), html::text(" · "),
             element("a", {html::href(request.with("/diff", "view", is_unified ? "" : "unified"))},
                     {html::text(is_unified ? "Side by side" : "Unified")})}});
  const std::string from = parts::blocks_of(*before);
  const std::string to = parts::blocks_of(*after);
  body.add(plots::scrollable(is_unified ? unified_diff(from, to) : side_by_side_diff(from, to),
                             "Differences"));
  return {"Diff", std::move(body)};
}

}  // namespace hone
