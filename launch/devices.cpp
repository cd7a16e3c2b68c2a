#include "launch/devices.hpp"

#include <algorithm>
#include <stdexcept>

#include "evaluation/devices/cores.hpp"
#include "evaluation/devices/cpu_device.hpp"
#include "evaluation/devices/cuda_device.hpp"

namespace hone {
namespace {

// "cuda": all GPUs; "cuda:1": that one. Nothing for other names.
std::vector<gpu_facts> gpus_named(const std::string& name) {
  if (name != "cuda" && !name.starts_with("cuda:")) return {};
  std::vector<gpu_facts> all = find_gpus();
  if (name == "cuda") {
    if (all.empty()) throw std::runtime_error("the NVIDIA driver sees no GPU");
    return all;
  }
  const std::string number = name.substr(5);
  std::erase_if(all, [&](const gpu_facts& gpu) { return std::to_string(gpu.ordinal) != number; });
  if (all.empty())
    throw std::runtime_error("there is no GPU " + number + "; `hone devices` lists what is there");
  return all;
}

}  // namespace

std::unique_ptr<judging_device> open_device(const std::string& name, const std::string& node) {
  if (name == "cpu")
    return make_cpu_device({.core = reserve_cores(1, false).front(), .node = node});
  const auto gpus = gpus_named(name);
  if (gpus.empty())
    throw std::runtime_error("--device " + name + ": expected cpu, cuda or cuda:NUMBER");
  return make_cuda_device(gpus.front(),
                          {.node = node, .judge = {.core = reserve_launching_core()}});
}

node_device* find_shared_device(std::vector<node_device>& devices,
                                const std::string& policy_device) {
  if (!policy_device.starts_with("cuda")) return nullptr;
  const auto shared = std::find_if(devices.begin(), devices.end(), [&](const node_device& d) {
    return d.name == (policy_device == "cuda" ? "cuda:0" : policy_device);
  });
  return shared != devices.end() ? &*shared : nullptr;
}

std::vector<node_device> plan_devices(
    const std::vector<std::string>& names, bool share_cores,
    const std::map<std::string, simulated_device_options>& simulated, const std::string& node) {
  const auto cpus = static_cast<std::size_t>(std::count(names.begin(), names.end(), "cpu"));
  std::vector<int> cores = cpus > 0 ? reserve_cores(cpus, share_cores) : std::vector<int>();
  std::map<std::string, int> counts;
  std::vector<node_device> devices;
  for (const std::string& name : names) {
    if (name == "cpu") {
      const int core = cores.back();
      cores.pop_back();
      const std::string own =
          core >= 0 ? "cpu:" + std::to_string(core) : "cpu " + std::to_string(counts[name]++);
      const cpu_device_options options{core, share_cores, node, own};
      devices.push_back({own, cpu_device_type(),
                         [options] { return std::unique_ptr<device>(make_cpu_device(options)); }});
    } else if (const auto gpus = gpus_named(name); !gpus.empty()) {
      for (const gpu_facts& gpu : gpus) {
        const std::string own = "cuda:" + std::to_string(gpu.ordinal);
        if (counts[own]++ > 0) continue;  // "cuda" and "cuda:0"
        const cuda_device_options options{
            .node = node, .judge = {.core = share_cores ? -1 : reserve_launching_core()}};
        devices.push_back({own, gpu.type, [gpu, options] {
                             return std::unique_ptr<device>(make_cuda_device(gpu, options));
                           }});
      }
    } else if (name.starts_with("simulated:") && name.size() > 10) {
      simulated_device_options options;
      const std::string kind = name.substr(10);
      if (const auto known = simulated.find(kind); known != simulated.end())
        options = known->second;
      options.name = kind;
      options.node = node;
      const int number = counts[name]++;
      // A fast one is fed by the dozen, so that what is measured is the ring and not the waiting.
      const std::uint32_t credits = options.verify_us + options.measure_us < 1000 ? 64 : 2;
      const std::chrono::seconds job_limit(2 + credits * (options.verify_us + options.measure_us) /
                                                   250000);
      options.device_name = name + (number > 0 ? "#" + std::to_string(number) : "");
      devices.push_back({options.device_name, simulated_device_type(kind),
                         [options] { return make_simulated_device(options); }, credits, job_limit});
    } else {
      throw std::runtime_error("'" + name +
                               "' is no device; expected cpu, cuda, cuda:NUMBER or simulated:NAME");
    }
  }
  return devices;
}

}  // namespace hone
