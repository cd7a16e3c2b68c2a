#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace hone {

// The results of a run, as text and as JSON: tasks with their best variants, outcomes and rewards
// by stage, the comparison of the policies before and after the contrastive stage, and how busy
// each kind of actor was.
struct run_report {
  std::string text;
  nlohmann::ordered_json json;
};

// Makes the report of a run from its pool, which may be open for writing elsewhere. `busy` holds
// the busy share of each room ("generator", "learner", ...); if it is empty, the report has no busy
// shares. `seconds` is the time to which the shares refer. The report of a resumed run has no rates
// per hour, because the pool also holds results from before the resumption. Throws pool_error.
run_report make_report(const std::filesystem::path& pool, const std::map<std::string, double>& busy,
                       double seconds, bool is_resumed);

}  // namespace hone
