#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/telemetry.hpp"
#include "policy/sampling/endpoint_usage.hpp"

namespace hone {

// What the actors of a run have done since each of them began.
struct run_activity {
  // Busy shares of the actors of each room ("generator", "learner", ...), without queues, and under
  // "device leased" the share during which the policy leased the devices.
  std::map<std::string, double> busy;
  std::map<std::string, endpoint_usage> endpoints;  // by name
};
run_activity activity_of(const node_snapshot& snapshot);

// Returns lines for a report, and adds the same to its JSON; nothing for an empty activity.
// `seconds` is the time to which the activity refers.
std::string describe_activity(const run_activity& activity, double seconds, bool is_resumed,
                              nlohmann::ordered_json& json);

}  // namespace hone
