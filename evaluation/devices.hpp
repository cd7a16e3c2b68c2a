#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/backends/simulated/simulated_device.hpp"
#include "evaluation/device.hpp"
#include "evaluation/driver/gpus.hpp"

namespace hone {

// Makes a device, on the thread that will use it. Throws std::runtime_error.
using device_maker = std::function<std::unique_ptr<device>()>;

// A device that a node is to have.
struct planned_device {
  std::string name;  // "cpu:1", "cuda:0", "simulated:a"
  record<schema::DeviceType> type;
  device_maker make;
  std::uint32_t credits = 2;  // of its verifier and of its benchmarker
  // The time within which the device answers, including jobs that wait before this one. CAF's clock
  // keeps an entry for every request until its time is over, answered or not: at ten thousand jobs a
  // second, minutes would be hundreds of megabytes.
  std::chrono::seconds job_limit{300};
};

// Plans the devices that names stand for: "cpu" (one core each time it is listed), "cuda" (every GPU),
// "cuda:1", "simulated:NAME". Keeps this process off the cores that devices reserve, so it must be
// called before threads are started. `simulated` holds options by NAME. Throws std::runtime_error.
std::vector<planned_device> plan_devices(
    const std::vector<std::string>& names, bool share_cores,
    const std::map<std::string, simulated_device_options>& simulated, const std::string& node);

// Returns the planned device of the GPU that a policy runs on ("cuda" is the first one); null if no
// device uses that GPU.
planned_device* find_device_on_gpu(std::vector<planned_device>& devices,
                                   const std::string& policy_device);

// Opens the one device that a command judges on by itself: "cpu", "cuda" or "cuda:1". It belongs to
// this thread. Throws std::runtime_error.
std::unique_ptr<device> open_device(const std::string& name, const std::string& node);

// The devices of this machine, for `hone devices`.
struct present_devices {
  record<schema::DeviceType> cpu;
  std::vector<gpu_facts> gpus;
  std::string gpu_problem;  // why there is no GPU; empty: there is one
};
present_devices find_devices();

}  // namespace hone
