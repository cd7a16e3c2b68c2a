#include <iostream>

#include "evaluation/cuda/gpus.hpp"
#include "evaluation/devices/cpu_device.hpp"
#include "launch/commands.hpp"
#include "launch/printing.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// A line or an object a device; what is missing is said beside them, and is no failure.
int list_devices(bool json) {
  const auto cpu = cpu_device_type();
  if (json) {
    std::cout << one_line(ordered_json{{"device", "cpu"},
                                       {"device_type", view(cpu->getName())},
                                       {"target", view(cpu->getTarget())}})
              << "\n";
  } else {
    std::cout << pad("cpu", 10) << view(cpu->getName()) << "\n";
  }
  std::vector<gpu_facts> gpus;
  std::string problem;
  try {
    gpus = find_gpus();
    if (gpus.empty()) problem = "the NVIDIA driver is here, but no GPU that this process may use";
  } catch (const std::exception& e) {
    problem = e.what();
  }
  for (const gpu_facts& gpu : gpus) {
    const std::string name = "cuda:" + std::to_string(gpu.ordinal);
    if (json) {
      std::cout << one_line(ordered_json{{"device", name},
                                         {"device_type", view(gpu.type->getName())},
                                         {"target", gpu.architecture},
                                         {"model", gpu.model},
                                         {"driver", gpu.driver},
                                         {"memory_bytes", gpu.memory_bytes},
                                         {"multiprocessors", gpu.multiprocessors},
                                         {"reaches_host_memory", gpu.reaches_host_memory}})
                << "\n";
    } else {
      std::cout << pad(name, 10) << view(gpu.type->getName()) << "  (" << gpu.model << ", "
                << gpu.multiprocessors << " multiprocessors, " << gpu.memory_bytes / (1U << 30U)
                << " GiB, driver " << gpu.driver << ")\n";
      if (gpu.reaches_host_memory)
        std::cout << pad("", 10)
                  << "its code can write to the memory of the process that launched it: trust "
                     "scores of hostile variants less, or load nvidia-uvm with uvm_disable_hmm=1\n";
    }
  }
  if (!problem.empty()) (json ? std::cerr : std::cout) << "no CUDA device: " << problem << "\n";
  return 0;
}

}  // namespace

void add_devices_command(CLI::App& app, command_action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "devices",
      "What this machine has to judge on, with the device types that scores are kept under");
  command->add_flag("--json", *json, "one object a device");
  command->callback([json, &action] { action = [json] { return list_devices(*json); }; });
}

}  // namespace hone
