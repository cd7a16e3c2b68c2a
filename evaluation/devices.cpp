#include "evaluation/devices.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <thread>

#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cpu/cpu_device.hpp"
#include "evaluation/backends/cuda/cuda_device.hpp"
#include "process/user_cache.hpp"

namespace hone {

std::vector<gpu_facts> gpus_named(const std::string& name) {
  if (name != "cuda" && !name.starts_with("cuda:")) return {};
  std::vector<gpu_facts> all = find_gpus();
  if (name == "cuda") {
    if (all.empty()) throw std::runtime_error("the device cuda: the NVIDIA driver sees no GPU");
    return all;
  }
  const std::string number = name.substr(5);
  std::erase_if(all, [&](const gpu_facts& gpu) { return std::to_string(gpu.ordinal) != number; });
  if (all.empty())
    throw std::runtime_error("the device " + name + ": there is no GPU " + number +
                             "; `hone devices` lists what is there");
  return all;
}

namespace {

constexpr std::string_view simulated_prefix = "simulated:";

planned_device planned_simulated(const simulated_device_options& options) {
  // A fast device gets many credits, so that a run with it measures the ring's own speed and not
  // the time that the device waits for jobs.
  const std::int64_t job_us = options.verify_us + options.measure_us;
  const std::uint32_t credits = job_us < 1000 ? 64 : 2;
  return {options.device_name, simulated_device_type(options.name),
          [options] { return make_simulated_device(options); }, credits, std::nullopt};
}

struct reserved_hardware {
  std::vector<reserved_core> cores;        // for CPU devices
  std::map<std::string, early_lock> gpus;  // by UUID
};

// Plans devices one name after another.
class device_planner {
 public:
  device_planner(const device_options& options, reserved_hardware reserved)
      : options_(&options), reserved_(std::move(reserved)) {}

  void plan(const std::string& name) {
    if (name == "cpu") return plan_cpu();
    if (const auto gpus = gpus_named(name); !gpus.empty()) return plan_gpus(gpus);
    if (is_simulated(name) && name.size() > simulated_prefix.size()) return plan_simulated(name);
    throw std::runtime_error("'" + name +
                             "' is no device; expected cpu, cuda, cuda:NUMBER or simulated:NAME");
  }
  std::vector<planned_device> planned() { return std::move(devices_); }

 private:
  // Programs that do not replace a process before it would be ready.
  static constexpr std::size_t few_programs = 3;

  void plan_cpu() {
    const reserved_core core = reserved_.cores.back();
    reserved_.cores.pop_back();
    const std::string name = core.number >= 0 ? "cpu:" + std::to_string(core.number)
                                              : "cpu " + std::to_string(counts_["cpu"]++);
    const cpu_device_options options{core, options_->share_cores, options_->node, name};
    devices_.push_back(
        {name, type_here(cpu_device_type()), [options] { return make_cpu_device(options); }});
  }

  record<schema::DeviceType> type_here(const record<schema::DeviceType>& type) const {
    return options_->share_cores ? type_with_shared_cores(type) : type;
  }

  void plan_gpus(const std::vector<gpu_facts>& gpus) {
    for (gpu_facts gpu : gpus) {
      gpu.type = type_here(gpu.type);
      const std::string name = "cuda:" + std::to_string(gpu.ordinal);
      if (counts_[name]++ > 0) continue;  // listed twice, as in "cuda" and "cuda:0"
      const std::string measured_as = name + " " + gpu.uuid;
      cuda_device_options options{
          .node = options_->node,
          .name = measured_as,
          .judge = {.locks_gpu = !options_->share_cores,
                    .kept_lock = reserved_.gpus[gpu.uuid],
                    .launch_core = options_->share_cores ? reserved_core() : reserve_launch_core(),
                    .baselines = options_->baselines,
                    .compiled_references = options_->compiled_references}};
      if (options_->programs <= few_programs) options.judge.spares = 0;
      if (const auto cache = user_cache(); options.judge.locks_gpu && !cache.empty())
        options.judge.driver_cache = cache / "driver" / gpu.uuid;
      devices_.push_back(
          {name, gpu.type, [gpu, options] { return make_cuda_device(gpu, options); }});
      devices_.back().measured_as = measured_as;
    }
  }

  void plan_simulated(const std::string& name) {
    simulated_device_options options;
    const std::string kind = name.substr(simulated_prefix.size());
    if (const auto known = options_->simulated.find(kind); known != options_->simulated.end())
      options = known->second;
    options.name = kind;
    options.node = options_->node;
    const int number = counts_[name]++;
    options.device_name = name + (number > 0 ? "#" + std::to_string(number) : "");
    devices_.push_back(planned_simulated(options));
  }

  const device_options* options_;
  reserved_hardware reserved_;
  std::map<std::string, int> counts_;  // by name
  std::vector<planned_device> devices_;
};

// Reserves the named GPUs and a core for each CPU device, once all of them are free.
reserved_hardware reserve_hardware(const std::vector<std::string>& names,
                                   const device_options& options) {
  constexpr auto pause = std::chrono::milliseconds(200);
  const auto cpus = static_cast<std::size_t>(std::count(names.begin(), names.end(), "cpu"));
  std::map<std::string, std::string> gpus;
  for (const std::string& name : options.share_cores ? std::vector<std::string>() : names) {
    for (const gpu_facts& gpu : gpus_named(name))
      gpus[gpu.uuid] = "cuda:" + std::to_string(gpu.ordinal);
  }
  for (bool waits = false;; waits = true) {
    try {
      reserved_hardware reserved;
      if (!gpus.empty()) reserved.gpus = reserve_gpus(gpus);
      if (cpus > 0) reserved.cores = reserve_cores(cpus, options.share_cores);
      return reserved;
    } catch (const hardware_taken& e) {
      if (!options.begin_to_wait) throw;
      if (!waits) options.begin_to_wait(e.what());
      std::this_thread::sleep_for(pause);
    }
  }
}

}  // namespace

void set_simulated(std::vector<planned_device>& devices, const std::string& node,
                   const std::map<std::string, simulated_device_options>& simulated) {
  for (planned_device& one : devices) {
    if (!is_simulated(one.name)) continue;
    const std::string kind =
        one.name.substr(simulated_prefix.size(), one.name.find('#') - simulated_prefix.size());
    const auto known = simulated.find(kind);
    if (known == simulated.end()) continue;
    simulated_device_options options = known->second;
    options.name = kind;
    options.node = node;
    options.device_name = one.name;
    one = planned_simulated(options);
  }
}

std::vector<std::string> device_types_of(const std::vector<planned_device>& devices) {
  std::set<std::string> types;
  for (const planned_device& one : devices) types.emplace(view(one.type->getName()));
  return {types.begin(), types.end()};
}

std::vector<planned_device> plan_devices(const std::vector<std::string>& names,
                                         const device_options& options) {
  device_planner planner(options, reserve_hardware(names, options));
  for (const std::string& name : names) planner.plan(name);
  return planner.planned();
}

bool is_simulated(std::string_view name) { return name.starts_with(simulated_prefix); }

planned_device* find_device_on_gpu(std::vector<planned_device>& devices,
                                   const std::string& policy_device) {
  if (!policy_device.starts_with("cuda")) return nullptr;
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const planned_device& d) {
    return d.name == (policy_device == "cuda" ? "cuda:0" : policy_device);
  });
  return found != devices.end() ? &*found : nullptr;
}

planned_device plan_device(const std::string& name, const device_options& options) {
  if (name.starts_with("simulated")) throw std::runtime_error("a simulated device runs no program");
  // "cuda" would plan all GPUs and reserve a core for each.
  const auto gpus = gpus_named(name);
  return plan_devices({gpus.empty() ? name : "cuda:" + std::to_string(gpus.front().ordinal)},
                      options)
      .front();
}

present_devices find_devices() {
  present_devices found{cpu_device_type(), {}, ""};
  try {
    found.gpus = find_gpus();
    if (found.gpus.empty())
      found.gpu_problem = "the NVIDIA driver is here, but no GPU that this process may use";
  } catch (const std::exception& e) {
    found.gpu_problem = e.what();
  }
  return found;
}

}  // namespace hone
