#pragma once

#include <memory>
#include <string>
#include <vector>

namespace c10 {
struct Device;
}
namespace torch::jit {
struct Graph;
}

namespace hone {

// Makes an inlined graph fit for the device that is being judged: "cuda", x.device and x.is_cuda
// mean that device, .cuda() is nothing. Throws program_error (rejected) where another device
// is named.
void settle_devices(torch::jit::Graph& graph, c10::Device judged);

// Throws program_error (rejected) for the first operator that is not allowed, for random
// numbers, and for loops whose bound depends on what a tensor holds. To be called on the graph that
// runs.
void check_rules(const torch::jit::Graph& graph);

// Kernels that launches name, sorted, each once.
std::vector<std::string> launched_kernels(const torch::jit::Graph& graph);

}  // namespace hone
