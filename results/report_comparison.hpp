#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "results/run_results.hpp"

namespace hone {

// Return the parts of a report that compare policies, and enter their numbers into the report's
// JSON. Empty if the run has no such comparison.

// Compares the policies before and after the contrastive stage, on the tasks that the run learns
// from: with and without copies, without exemplars, and greedily.
std::string describe_comparison(const run_results& of, nlohmann::ordered_json& json);
// Shows what the policies at the ends of the stages can do on held-out tasks.
std::string describe_held_out(const run_results& of, nlohmann::ordered_json& json);

}  // namespace hone
