#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/run/run_activity.hpp"

namespace hone {

// The results of a run, as text and as JSON: tasks with their best variants, outcomes and rewards
// by stage, the comparison of the policies before and after the contrastive stage, and how busy
// each kind of actor was.
struct run_report {
  std::string text;
  nlohmann::ordered_json json;
};

// Makes the report of a run from its pool, which may be open for writing elsewhere, and from the
// activity of its actors, which may be empty. `seconds` is the time to which that refers. The
// report of a resumed run has no rates per hour, because the pool also holds results from before
// the resumption. Throws pool_error.
run_report make_report(const std::filesystem::path& pool, const run_activity& activity,
                       double seconds, bool is_resumed);

}  // namespace hone
