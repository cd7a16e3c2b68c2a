#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/gpus.hpp"
#include "evaluation/backends/device.hpp"
#include "evaluation/backends/simulated/simulated_device.hpp"

namespace hone {

// Makes a device. Must be called on the thread that will use the device. Throws std::runtime_error.
using device_maker = std::function<std::unique_ptr<device>()>;

// A device that a node will make, with its limits.
struct planned_device {
  std::string name;  // "cpu:1", "cuda:0", "simulated:a"
  record<schema::DeviceType> type;
  device_maker make;
  std::uint32_t credits = 2;  // of its verifier, and as many of its benchmarker
  // Time limit for the answer to a job, including the time for the jobs that wait ahead of it. None
  // for devices that cannot hang: CAF's clock wakes for every limit, and keeps it until it has
  // passed, even if the request was answered.
  std::optional<std::chrono::seconds> job_limit{300};
  // What measurements call a GPU: its name and its UUID, since another GPU may have the name on
  // another day. Empty: the name.
  std::string measured_as{};
};

// Returns all GPUs for "cuda", one for "cuda:1", and none for names of other devices. Throws
// std::runtime_error if a GPU is named that is not there.
std::vector<gpu_facts> gpus_named(const std::string& name);

// Arguments of plan_devices() in addition to the devices' names.
struct device_options {
  std::string node;          // name of the node, for measurements
  bool share_cores = false;  // several devices may use one core
  bool baselines = true;     // GPUs time each reference in other ways than eager as well
  std::map<std::string, simulated_device_options> simulated{};  // by NAME
  // Folder of compiled references, which GPUs time as the baseline `inductor`; empty: none.
  std::filesystem::path compiled_references{};
  // If it is set, planning waits until other processes of Hone release the GPUs, and the cores that
  // CPU devices need. It is called once, with the reason, before planning begins to wait, and may
  // throw.
  std::function<void(const std::string&)> begin_to_wait{};
  // Number of programs that a device will judge at most. With few, it starts fewer processes.
  std::size_t programs = std::numeric_limits<std::size_t>::max();
};

// Returns true if `name`, one that plan_devices() takes, is that of a simulated device.
bool is_simulated(std::string_view name);

// Plans the devices that `names` lists: "cpu" (one core each time it is listed), "cuda" (every
// GPU), "cuda:1" or "simulated:NAME". Keeps this process off the cores that devices reserve, so it
// must be called before threads are started. Throws std::runtime_error.
std::vector<planned_device> plan_devices(const std::vector<std::string>& names,
                                         const device_options& options);

// Has planned devices that are simulated behave as `simulated` says, by NAME, those that it does
// not name as they are. `node`: as in device_options.
void set_simulated(std::vector<planned_device>& devices, const std::string& node,
                   const std::map<std::string, simulated_device_options>& simulated);

// Returns the names of the devices' types, each once, sorted.
std::vector<std::string> device_types_of(const std::vector<planned_device>& devices);

// Returns the planned device on the GPU that a policy runs on, or null if no device uses that GPU.
// The policy device "cuda" is the first GPU. The result points into `devices`.
planned_device* find_device_on_gpu(std::vector<planned_device>& devices,
                                   const std::string& policy_device);

// Plans the single device that a command judges on without a node: "cpu", "cuda" (the first GPU) or
// "cuda:1". As plan_devices() otherwise.
planned_device plan_device(const std::string& name, const device_options& options);

// The devices of this machine, for `hone devices`.
struct present_devices {
  record<schema::DeviceType> cpu;
  std::vector<gpu_facts> gpus;
  std::string gpu_problem;  // why there is no GPU; empty if there is one
};
present_devices find_devices();

}  // namespace hone
