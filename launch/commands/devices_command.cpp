#include <iostream>

#include "evaluation/devices.hpp"
#include "launch/commands/commands.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

ordered_json gpu_to_json(const gpu_facts& gpu) {
  return {{"device", "cuda:" + std::to_string(gpu.ordinal)},
          {"device_type", view(gpu.type->getName())},
          {"target", gpu.architecture},
          {"model", gpu.model},
          {"uuid", gpu.uuid},
          {"driver", gpu.driver},
          {"memory_bytes", gpu.memory_bytes},
          {"multiprocessors", gpu.multiprocessors},
          {"reaches_host_memory", gpu.reaches_host_memory}};
}

void print_gpu(const gpu_facts& gpu) {
  std::cout << pad("cuda:" + std::to_string(gpu.ordinal), 10) << view(gpu.type->getName()) << "  ("
            << gpu.model << ", " << gpu.multiprocessors << " multiprocessors, "
            << gpu.memory_bytes / (1U << 30U) << " GiB, driver " << gpu.driver << ", " << gpu.uuid
            << ")\n";
  if (gpu.reaches_host_memory)
    std::cout << pad("", 10)
              << "its code can write to the memory of the process that launched it: trust "
                 "scores of hostile variants less, or load nvidia-uvm with uvm_disable_hmm=1\n";
}

// Prints one line, or one JSON object, per device. If there is no GPU, prints the reason, with
// --json on standard error. That is not a failure.
int list_devices(bool json) {
  const present_devices found = find_devices();
  if (json) {
    std::cout << one_line(ordered_json{{"device", "cpu"},
                                       {"device_type", view(found.cpu->getName())},
                                       {"target", view(found.cpu->getTarget())}})
              << "\n";
  } else {
    std::cout << pad("cpu", 10) << view(found.cpu->getName()) << "\n";
  }
  for (const gpu_facts& gpu : found.gpus) {
    if (json) {
      std::cout << one_line(gpu_to_json(gpu)) << "\n";
    } else {
      print_gpu(gpu);
    }
  }
  if (!found.gpu_problem.empty())
    (json ? std::cerr : std::cout) << "no CUDA device: " << found.gpu_problem << "\n";
  return 0;
}

}  // namespace

void add_devices_command(CLI::App& app, command_action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "devices",
      "List the devices of this machine that can judge variants, with their device types");
  command->add_flag("--json", *json, "print one JSON object per device");
  command->callback([json, &action] { action = [json] { return list_devices(*json); }; });
}

}  // namespace hone
