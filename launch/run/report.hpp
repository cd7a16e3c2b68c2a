#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/telemetry.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// What a run has come to: tasks with their best variants, outcomes and rewards by stage, the
// comparison of the policies before and after the contrastive stage, and how busy each kind of
// actor was. From the pool, beside its writer or without one.
struct run_report {
  std::string text;
  nlohmann::ordered_json json;
};

// `busy`: share of its time by room ("generator", "learner", ...); empty where nobody measured it.
// `seconds`: how long that was. Rates by the hour are left out of a resumed run's, whose pool holds
// more than came about in them.
run_report make_report(const std::filesystem::path& pool, const std::map<std::string, double>& busy,
                       double seconds, bool is_resumed);

// Share of their lives that the actors of each room were busy; and under "device lent", that
// devices were lent to the policy.
std::map<std::string, double> busy_shares(const node_snapshot& snapshot);

}  // namespace hone
