#include <cmath>
#include <deque>
#include <fstream>
#include <map>

#include "messages/clock.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/plots/run_plots.hpp"

namespace hone {
namespace {

using html::element;
using nlohmann::ordered_json;

constexpr std::size_t max_cells = 120;
constexpr double cell_seconds = 10;

// A row may be of another version, or damaged: missing members are empty, and count as 0.
const ordered_json& member(const ordered_json& of, const std::string& name) {
  static const ordered_json nothing = ordered_json::object();
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found == of.end() ? nothing : *found;
}
double number_of(const ordered_json& of, const std::string& name) {
  const ordered_json& value = member(of, name);
  return value.is_number() ? value.get<double>() : 0;
}
std::string count_of(const ordered_json& of, const std::string& name) {
  const ordered_json& value = member(of, name);
  return value.is_number_unsigned() ? count_text(value.get<std::uint64_t>()) : "0";
}

// Reads the newest rows of a run's history, which its head writes every ten seconds.
std::deque<ordered_json> newest_rows(const std::filesystem::path& file) {
  std::deque<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > max_cells) lines.pop_front();
  }
  std::deque<ordered_json> rows;
  for (const std::string& line : lines) {
    auto row = ordered_json::parse(line, nullptr, false);
    // The last line may be incomplete: it is being written.
    if (row.is_object()) rows.push_back(std::move(row));
  }
  return rows;
}

plots::plot busy_lanes(const std::deque<ordered_json>& rows) {
  std::map<std::string, std::vector<double>> lanes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [name, share] : member(rows[i], "busy").items()) {
      auto& lane = lanes.try_emplace(name, rows.size(), std::nan("")).first->second;
      lane[i] = share.is_number() ? share.get<double>() : std::nan("");
    }
  }
  std::vector<plots::lane_row> made;
  for (auto& [name, busy] : lanes) made.push_back({name, std::move(busy)});
  return plots::lanes("Busy share of each actor", made, cell_seconds);
}

element queues_table(const ordered_json& row) {
  std::vector<plots::table_row> table;
  for (const auto& [name, counts] : member(row, "queues").items())
    table.push_back(
        {{name, count_of(counts, "queued"), count_of(counts, "in_flight")}, std::nullopt});
  return plots::wide_table({"queue", "waiting", "in flight"}, table);
}

element rooms_table(const std::deque<ordered_json>& rows) {
  std::vector<plots::table_row> table;
  const ordered_json& last = rows.back();
  const ordered_json& first = rows.front();
  const double hours = (number_of(last, "time_ms") - number_of(first, "time_ms")) / 3'600'000;
  for (const auto& [room, counts] : member(last, "rooms").items()) {
    const double added = number_of(counts, "processed") -
                         number_of(member(member(first, "rooms"), room), "processed");
    table.push_back({{room, count_of(counts, "actors"), count_of(counts, "processed"),
                      count_of(counts, "failed"), count_of(counts, "restarts"),
                      hours > 0 && added >= 0 ? number_text(added / hours) : "-"},
                     std::nullopt});
  }
  return plots::wide_table({"actors", "number", "processed", "failed", "restarts", "an hour"},
                           table);
}

}  // namespace

page cluster_page(const std::filesystem::path& run, const page_request& /*request*/) {
  const auto rows = newest_rows(run / "history.jsonl");
  element body;
  if (rows.empty())
    return {"Cluster",
            parts::paragraph("This run has no history yet: its head writes history.jsonl "
                             "every ten seconds while it runs.")};
  const ordered_json& last = rows.back();
  const double age_s = (static_cast<double>(unix_ms()) - number_of(last, "time_ms")) / 1000;
  const ordered_json& stage = member(last, "stage");
  body.add(parts::paragraph("As of " + duration_text(age_s * 1e6) + " ago: stage " +
                            (stage.is_string() ? stage.get<std::string>() : "unknown") + ", step " +
                            count_of(last, "step") + ", " + count_of(last, "ready_groups") +
                            " groups ready to train on, " + count_of(last, "waiting_groups") +
                            " waiting, " + count_of(last, "dropped_groups") + " dropped, lag " +
                            number_text(number_of(last, "lag")) + " steps."));
  body.add(plots::figure(busy_lanes(rows),
                         "One lane per actor, ten seconds per cell, darker where it was busier."));
  body.add(parts::section("Queues", {queues_table(last)}));
  body.add(parts::section("Actors", {rooms_table(rows)}));
  return {"Cluster", std::move(body)};
}

}  // namespace hone
