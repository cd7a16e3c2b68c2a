#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"

namespace hone {

// Reading what NVRTC made. None of these throws for malformed bytes: they find nothing.

// The parameters of a kernel from its table in the cubin (cuda_prelude.cuh), an object of that
// name.
std::optional<std::vector<kernel_parameter>> read_parameter_table(std::string_view cubin,
                                                                  const std::string& object);

// Registers, shared and local memory of each entry function, as ptxas -v tells them in the log;
// names are symbols. Threads a block are not in it (0).
std::vector<kernel_facts> read_resource_usage(std::string_view log);

// The line of `file` that a line of PTX (counted from 1) comes from, by the .loc before it.
// Nothing: it comes from another, or nothing is said.
std::optional<int> find_source_line(std::string_view ptx, long line, std::string_view file);

// Why PTX is refused: instructions that make lines of the L2 cache persist would keep inputs there
// from call to call.
std::optional<std::string> find_persisting_cache_use(std::string_view ptx);

// Whether a kernel synchronises its whole grid, so that it must be launched with all blocks at
// once: cooperative groups find their barrier through %envreg registers, in the kernel's own body
// or in a function that any kernel may call.
bool synchronises_grid(std::string_view ptx, const std::string& symbol);

}  // namespace hone
