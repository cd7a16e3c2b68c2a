#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/node.hpp"
#include "evaluation/devices/judging_device.hpp"
#include "evaluation/devices/simulated_device.hpp"

namespace hone {

// The devices that names like "cpu", "cuda" (every GPU), "cuda:1" and "simulated:NAME" stand for,
// with this process kept off the cores that devices reserve: call it before any thread is started.
// Throws std::runtime_error.
std::vector<node_device> plan_devices(
    const std::vector<std::string>& names, bool share_cores,
    const std::map<std::string, simulated_device_options>& simulated, const std::string& node);

// The one of these that is the GPU on which a policy runs ("cuda" is the first one); null: none is.
node_device* find_shared_device(std::vector<node_device>& devices,
                                const std::string& policy_device);

// The one device that a command which judges by itself was asked for: "cpu", "cuda" or "cuda:1". It
// belongs to this thread. Throws std::runtime_error.
std::unique_ptr<judging_device> open_device(const std::string& name, const std::string& node);

}  // namespace hone
