#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>

#include "evaluation/compile/compile_result.hpp"

namespace hone {

// What g++ calls this machine's processor: the options that -march=native stands for, separated by
// blanks. Artifacts for a device may then be compiled on another machine. Throws std::runtime_error
// where there is no g++.
std::string native_target();
// "gcc12.2"
std::string compiler_name();

// Compiles cuda blocks for the CPU device with the host's g++, against cuda_on_cpu.cuh. The block
// is hostile text: it is preprocessed by a process that can open no file, assembler is looked for
// in the result, and the shared object is checked before anyone loads it. Safe on any thread; each
// call runs processes of its own, limited in time and memory.
class cpu_compiler {
 public:
  explicit cpu_compiler(std::string target);

  // `launched`: the kernels that the host program names, possibly with template arguments.
  compile_result compile(std::string_view block, const std::set<std::string>& launched,
                         bool fast_math, std::chrono::milliseconds time_limit) const;

 private:
  std::vector<std::string> target_;
  std::string compiler_;  // cc1plus
  std::string assembler_;
  std::string linker_;
};

}  // namespace hone
