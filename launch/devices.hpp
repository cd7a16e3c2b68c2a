#pragma once

#include <map>
#include <string>
#include <vector>

#include "actors/node.hpp"
#include "evaluation/devices/simulated_device.hpp"

namespace hone {

// The devices that names like "cpu" and "simulated:NAME" stand for, with this process kept off the cores that CPU devices
// reserve: call it before any thread is started. Throws std::runtime_error.
std::vector<node_device> plan_devices(const std::vector<std::string>& names, bool share_cores, const std::map<std::string, simulated_device_options>& simulated, const std::string& node);

}  // namespace hone
