#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"

namespace hone {

// Analysis of NVRTC's output, which is hostile. It is done in the judge's process: all functions
// take time linear in the output's length, also for many kernels. No function throws for malformed
// bytes: the functions find nothing. Safe on any thread.

// Returns the parameters of `count` kernels from their tables in the cubin (see cuda_prelude.cuh),
// which are the objects `prefix`0, `prefix`1 and so on. An entry is nullopt if its table is missing
// or malformed.
std::vector<std::optional<std::vector<kernel_parameter>>> read_parameter_tables(
    std::string_view cubin, std::string_view prefix, std::size_t count);

// Memory on the GPU that a cubin takes in addition to tensors.
struct cubin_memory {
  // The largest stack of a thread, with those of called functions, and the symbol of its function.
  // A function that calls itself counts once.
  std::uint64_t stack_bytes = 0;
  std::string stack_symbol;
  std::uint64_t variable_bytes = 0;  // of the module: variables, constants and code
  bool allocates = false;            // by malloc() or new, from the context's heap
};
// Returns nullopt if the cubin is malformed.
std::optional<cubin_memory> read_memory_use(std::string_view cubin);

// Returns the registers, shared memory and local memory of each entry function, which ptxas -v
// reports in the log. Names are symbols. The log does not contain the threads per block, which are
// 0.
std::vector<kernel_facts> read_resource_usage(std::string_view log);

// Returns the line of `file` from which a line of PTX (counted from 1) was made, by the .loc
// directive before it. Returns nullopt if the line comes from another file, or if no directive
// precedes it.
std::optional<int> find_source_line(std::string_view ptx, long line, std::string_view file);

// Returns the reason to refuse PTX that makes lines of the L2 cache persist, or nullopt. Such lines
// would keep inputs in the cache from call to call.
std::optional<std::string> find_persisting_cache_use(std::string_view ptx);

// Finds the kernels that synchronize their whole grid, so that all their blocks must be launched at
// once. Cooperative groups find their barrier through %envreg registers, in the kernel's own body
// or in a function that any kernel may call.
class grid_barriers {
 public:
  explicit grid_barriers(std::string_view ptx);
  bool are_in(const std::string& symbol) const;

 private:
  bool is_in_function_ = false;
  std::set<std::string, std::less<>> kernels_;
};

}  // namespace hone
