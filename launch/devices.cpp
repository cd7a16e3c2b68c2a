#include "launch/devices.hpp"

#include <algorithm>
#include <stdexcept>

#include "evaluation/devices/cpu_device.hpp"

namespace hone {

std::vector<node_device> plan_devices(const std::vector<std::string>& names, bool share_cores, const std::map<std::string, simulated_device_options>& simulated, const std::string& node) {
  const auto cpus = static_cast<std::size_t>(std::count(names.begin(), names.end(), "cpu"));
  std::vector<int> cores = cpus > 0 ? reserve_cores(cpus, share_cores) : std::vector<int>();
  std::map<std::string, int> counts;
  std::vector<node_device> devices;
  for (const std::string& name : names) {
    if (name == "cpu") {
      const int core = cores.back();
      cores.pop_back();
      const std::string own = core >= 0 ? "cpu:" + std::to_string(core) : "cpu " + std::to_string(counts[name]++);
      const cpu_device_options options{core, share_cores, node, own};
      devices.push_back({own, cpu_device_type(), [options] { return std::unique_ptr<device>(make_cpu_device(options)); }});
    } else if (name.starts_with("simulated:") && name.size() > 10) {
      simulated_device_options options;
      const std::string kind = name.substr(10);
      if (const auto known = simulated.find(kind); known != simulated.end()) options = known->second;
      options.name = kind;
      options.node = node;
      const int number = counts[name]++;
      // A fast one is fed by the dozen, so that what is measured is the ring and not the waiting.
      const std::uint32_t credits = options.verify_us + options.measure_us < 1000 ? 64 : 2;
      const std::chrono::seconds job_limit(2 + credits * (options.verify_us + options.measure_us) / 250000);
      options.device_name = name + (number > 0 ? "#" + std::to_string(number) : "");
      devices.push_back({options.device_name, simulated_device_type(kind), [options] { return make_simulated_device(options); }, credits, job_limit});
    } else {
      throw std::runtime_error("'" + name + "' is no device; expected cpu or simulated:NAME");
    }
  }
  return devices;
}

}  // namespace hone
