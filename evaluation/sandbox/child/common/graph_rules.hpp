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

// Adapts an inlined graph to the device that is being judged: "cuda" and x.device mean that device,
// x.is_cuda is true, and .cuda() has no effect. Throws program_error (rejected) if the graph names
// another device.
void settle_devices(torch::jit::Graph& graph, c10::Device judged);

// Throws program_error (rejected) for the first operator that is not allowed, for random numbers,
// and for loops whose bound depends on the contents of a tensor. Must be called on the graph that
// runs.
void check_rules(const torch::jit::Graph& graph);

// Inserts hone::synchronize() before each operator that may read or write a tensor's contents, for
// devices that queue launches. What allocates, makes views or reads shapes needs none.
void synchronize_operators(torch::jit::Graph& graph);

// Makes attention use as many values as keys, and fail if there are fewer. LibTorch's attention on
// a CPU trusts that both are equally long, and reads beyond the shorter one.
void bound_attention(torch::jit::Graph& graph);

// Returns the names of the kernels that the graph launches, each once, in the order of the text.
std::vector<std::string> launched_kernels(const torch::jit::Graph& graph);
// Returns the number of convolutions in the graph's text, transposed ones as well.
std::size_t count_convolutions(const torch::jit::Graph& graph);

}  // namespace hone
