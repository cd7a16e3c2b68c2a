#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// A run for a report: the folder of its pool, and texts that the report repeats.
struct reported_run {
  std::string name;
  std::string state;  // one sentence: "The run is finished."
  std::filesystem::path pool;
  std::string configuration;    // TOML; empty: unknown
  std::string finished_report;  // report.json of a finished run; empty: none
};

// Returns a report of one run, or a comparison of several, as one HTML file without scripts that
// loads nothing: curves, outcomes, speed-ups by task, the best variants with their origin, reasons
// of failures, held-out results and the configuration. `made_by` names the program and its version.
// Throws pool_error.
std::string html_report(const std::vector<reported_run>& runs, const std::string& made_by);

}  // namespace hone
