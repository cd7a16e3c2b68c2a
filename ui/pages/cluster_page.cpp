#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <functional>
#include <map>

#include "messages/clock.hpp"
#include "messages/measurements.hpp"
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
  constexpr double max_count = 1e15;
  return count_text(static_cast<std::uint64_t>(std::clamp(number_of(of, name), 0.0, max_count)));
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

using lane_map = std::map<std::string, std::vector<double>>;

double mean_of(const std::vector<double>& shares) {
  double sum = 0;
  double count = 0;
  for (const double share : shares) {
    if (std::isnan(share)) continue;
    sum += share;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

// Returns a lane per kind of actor, the mean of its actors, and the lanes of the actors that differ
// most from it.
std::vector<plots::lane_row> grouped(const lane_map& lanes) {
  constexpr double outlying = 0.25;  // of the time
  constexpr std::size_t max_outliers = 12;
  std::map<std::string, std::vector<const lane_map::value_type*>> groups;
  for (const auto& lane : lanes)
    groups[lane.first.substr(0, lane.first.find(' '))].push_back(&lane);
  std::vector<plots::lane_row> made;
  std::vector<std::pair<double, const lane_map::value_type*>> outliers;
  for (const auto& [kind, members] : groups) {
    std::vector<double> means;
    for (std::size_t i = 0; i < members.front()->second.size(); ++i) {
      std::vector<double> cell;
      for (const auto* one : members) cell.push_back(one->second[i]);
      means.push_back(mean_of(cell));
    }
    const double typical = mean_of(means);
    for (const auto* one : members) {
      const double distance = std::abs(mean_of(one->second) - typical);
      if (distance > outlying) outliers.emplace_back(distance, one);
    }
    made.push_back({kind + " (mean of " + std::to_string(members.size()) + ")", std::move(means)});
  }
  std::sort(outliers.begin(), outliers.end(), std::greater<>());
  if (outliers.size() > max_outliers) outliers.resize(max_outliers);
  for (const auto& [distance, one] : outliers) made.push_back({one->first, one->second});
  return made;
}

plots::plot busy_lanes(const std::deque<ordered_json>& rows) {
  constexpr std::size_t max_single = 24;  // lanes
  lane_map lanes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [name, share] : member(rows[i], "busy").items()) {
      auto& lane = lanes.try_emplace(name, rows.size(), std::nan("")).first->second;
      lane[i] = share.is_number() ? share.get<double>() : std::nan("");
    }
  }
  std::vector<plots::lane_row> made;
  if (lanes.size() > max_single) {
    made = grouped(lanes);
  } else {
    for (auto& [name, busy] : lanes) made.push_back({name, std::move(busy)});
  }
  return plots::lanes("Busy share of each actor", made, cell_seconds);
}

// Returns the middle of a device's clocks over the rows, by device; devices without a clock are
// left out.
std::map<std::string, double> clocks_of(const std::deque<ordered_json>& rows) {
  std::map<std::string, std::vector<double>> all;
  for (const ordered_json& row : rows) {
    for (const auto& [name, numbers] : member(row, "devices").items()) {
      if (const double mhz = number_of(numbers, "clock_mhz"); mhz > 0) all[name].push_back(mhz);
    }
  }
  std::map<std::string, double> medians;
  for (auto& [name, clocks] : all) medians[name] = lower_median(std::move(clocks));
  return medians;
}

// Lists the devices with their clocks, slowest first. One that is slower than most of them is
// marked: its scores are ratios, but it measures fewer variants.
element devices_table(const std::deque<ordered_json>& rows) {
  constexpr double slow = 0.9;  // of the median clock
  const std::map<std::string, double> clocks = clocks_of(rows);
  std::vector<std::pair<double, std::string>> sorted;
  std::vector<double> all;
  for (const auto& [name, mhz] : clocks) {
    sorted.emplace_back(mhz, name);
    all.push_back(mhz);
  }
  std::sort(sorted.begin(), sorted.end());
  const double typical = all.empty() ? 0 : lower_median(std::move(all));
  std::vector<plots::table_row> table;
  for (const auto& [mhz, name] : sorted) {
    const ordered_json& last = member(member(rows.back(), "devices"), name);
    const double celsius = number_of(last, "temperature_c");
    table.push_back(
        {{name, number_text(mhz), number_text(number_of(last, "clock_mhz")),
          celsius > 0 ? number_text(celsius) : "-", mhz < slow * typical ? "slower than most" : ""},
         std::nullopt});
  }
  return plots::wide_table({"benchmarker", "clock, MHz", "now", "Celsius", "note"}, table);
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
                         "One lane per actor, ten seconds per cell, darker where it was busier. "
                         "Many actors share a lane per kind, followed by those that differ most."));
  body.add(parts::section("Queues", {queues_table(last)}));
  body.add(parts::section("Actors", {rooms_table(rows)}));
  if (!member(last, "devices").empty())
    body.add(parts::section("Clocks of devices", {devices_table(rows)}));
  return {"Cluster", std::move(body)};
}

}  // namespace hone
