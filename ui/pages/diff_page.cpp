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
  const auto after = variant_named(of.pool, request.segments[1]);
  const bool is_reference = request.segments[0] == "reference";
  const auto before = is_reference ? reference_of(of.pool, task_id(after->getTaskId()))
                                   : variant_named(of.pool, request.segments[0]);
  const bool is_unified = request.value("view") == "unified";
  element body;
  body.add({"p",
            {},
            {html::text("From "), name_of_side(of, *before, is_reference), html::text(" to "),
             name_of_side(of, *after, false), html::text(" · "),
             element("a", {html::href(request.with("/diff", "view", is_unified ? "" : "unified"))},
                     {html::text(is_unified ? "Side by side" : "Unified")})}});
  const std::string from = parts::blocks_of(*before);
  const std::string to = parts::blocks_of(*after);
  body.add(plots::scrollable(is_unified ? unified_diff(from, to) : side_by_side_diff(from, to),
                             "Differences"));
  return {"Diff", std::move(body)};
}

}  // namespace hone
