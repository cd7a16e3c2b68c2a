#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"

namespace hone {

// Compiles cuda blocks for the CPU device with the host's g++, against cuda_on_cpu(). A block is
// hostile text: a process that can open no file preprocesses it, the result is searched for
// assembler, and the shared object is checked before it is loaded. Each call runs separate
// processes, limited in time and memory. Safe on any thread.
class cpu_compiler {
 public:
  // `target`: see native_target() in host_toolchain.hpp. Throws std::runtime_error if there is no
  // g++.
  explicit cpu_compiler(const std::string& target);

  // Compiles a block. `launched`: the kernels that the host program names, possibly with template
  // arguments, in the order of its text.
  program_result<compiled_block> compile(std::string_view block,
                                         const std::vector<std::string>& launched, bool fast_math,
                                         std::chrono::milliseconds time_limit) const;

 private:
  std::vector<std::string> preprocess_arguments(bool fast_math) const;
  std::vector<std::string> compile_arguments(bool fast_math) const;
  // Throws block_refused.
  compiled_block build(std::string_view block, const std::vector<std::string>& launched,
                       bool fast_math, std::chrono::steady_clock::time_point deadline) const;

  std::vector<std::string> target_;
  std::string compiler_;  // cc1plus
  std::string assembler_;
  std::string linker_;
};

}  // namespace hone
