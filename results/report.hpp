#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "results/run_results.hpp"

namespace hone {

// The results of a run, as text and as JSON: tasks with their best variants, outcomes and rewards
// by stage, the comparison of the policies before and after the contrastive stage, and how busy
// each kind of actor was.
struct run_report {
  std::string text;
  nlohmann::ordered_json json;
};

// Makes the report of a run from its pool, which may be open for writing elsewhere. `activity` says
// how busy the actors were, and may be empty. `hours` is the time in which the pool was filled;
// with 0, the report has no rates. Throws pool_error.
run_report make_report(const std::filesystem::path& pool, const run_report& activity = {},
                       double hours = 0);
// Makes it from results that were read before.
run_report make_report(const run_results& results, const run_report& activity = {},
                       double hours = 0);

}  // namespace hone
