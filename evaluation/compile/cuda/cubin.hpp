#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"

namespace hone {

// Analysis of NVRTC's output. None of these functions throws for malformed bytes: they find
// nothing. Safe on any thread.

// Returns the parameters of a kernel from its table in the cubin (see cuda_prelude.cuh), which is
// the object of that name. Returns nullopt if the table is missing or malformed.
std::optional<std::vector<kernel_parameter>> read_parameter_table(std::string_view cubin,
                                                                  const std::string& object);

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

// Returns true if a kernel synchronises its whole grid, so that all its blocks must be launched at
// once. Cooperative groups find their barrier through %envreg registers, in the kernel's own body
// or in a function that any kernel may call.
bool synchronises_grid(std::string_view ptx, const std::string& symbol);

}  // namespace hone
