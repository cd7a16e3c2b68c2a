#include "results/printing.hpp"
#include "results/report_comparison.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/plots/plot.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t max_gains = 10;

// The versions of the policy that lead to the newest one, the last few first.
element versions(const snapshot& of) {
  constexpr std::size_t max_rows = 12;
  const version_chain chain = of.pool.versions();
  if (!chain.head()) return parts::paragraph("The policy has no version yet.");
  const auto path = chain.path_to(*chain.head());
  std::vector<plots::table_row> rows;
  for (auto at = path.rbegin(); at != path.rend() && rows.size() < max_rows; ++at) {
    const auto* version = chain.find(*at);
    const auto step = of.pool.step(*at);
    const auto metric = [&](std::string_view name) -> std::string {
      if (!step) return "-";
      for (const auto m : (*step)->getMetrics()) {
        if (view(m.getName()) == name) return number_text(m.getValue());
      }
      return "-";
    };
    rows.push_back({{std::to_string(*at), std::string(name_of((*version)->getStage())),
                     std::to_string((*version)->getStep()), metric("loss"), metric("gradient_norm"),
                     metric("entropy"), metric("tokens")},
                    std::nullopt});
  }
  return parts::section(
      "Versions of the policy",
      {plots::wide_table({"version", "stage", "step", "loss", "gradient norm", "entropy", "tokens"},
                         rows, 2),
       parts::paragraph(path.size() > rows.size() ? "The newest " + std::to_string(rows.size()) +
                                                        " of " + std::to_string(path.size()) + "."
                                                  : "")});
}

}  // namespace

page run_page(const snapshot& of, const page_request& /*request*/, std::string_view state) {
  const parts::run_view run{"this run", of.pool, of.results, of.numbers, of.curve, true};
  element body;
  body.add(parts::summary(run, state));
  body.add(parts::learning({run}));
  body.add(parts::outcomes(run));
  body.add(parts::sources(run));
  body.add(parts::speedups(run, max_gains));
  body.add(parts::compared(run));
  body.add(parts::held_out(run));
  body.add(parts::failures(run, max_gains));
  body.add(versions(of));
  return {"Run", std::move(body)};
}

}  // namespace hone
