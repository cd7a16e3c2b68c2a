#pragma once

#include <map>
#include <string>

#include "actors/telemetry.hpp"

namespace hone {

// Returns the busy share of the actors of each room, over the time from each actor's start on, and
// under "device leased" the share during which the policy leased the devices. Leaves out queues.
std::map<std::string, double> busy_shares(const node_snapshot& snapshot);

}  // namespace hone
