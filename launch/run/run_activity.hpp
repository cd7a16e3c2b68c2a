#pragma once

#include <map>
#include <string>

#include "actors/telemetry.hpp"
#include "policy/sampling/endpoint_usage.hpp"
#include "results/report.hpp"

namespace hone {

// Work that each actor of a run has done since its start.
struct run_activity {
  // Busy shares of the actors of each room ("generator", "learner", ...), without queues, and under
  // "device leased" the share during which the policy leased the devices.
  std::map<std::string, double> busy;
  std::map<std::string, endpoint_usage> endpoints;  // by name
};
run_activity activity_of(const node_snapshot& snapshot);

// Returns a part of a report, which is empty for an empty activity. `seconds` is the time to which
// the activity refers.
run_report describe_activity(const run_activity& activity, double seconds, bool is_resumed);

}  // namespace hone
