#pragma once

#include <string>
#include <vector>

#include "evaluation/program/failure.hpp"
#include "messages/names.hpp"

namespace hone {

// A parameter of a kernel.
struct kernel_parameter {
  schema::Kernel::Parameter::Kind kind = schema::Kernel::Parameter::Kind::OTHER;
  unsigned bytes = 0;
  bool operator==(const kernel_parameter&) const = default;
};

// Facts about a compiled kernel.
struct kernel_facts {
  std::string name;
  std::vector<kernel_parameter> parameters;
  // The following are known for CUDA only.
  std::string symbol{};  // in the cubin
  unsigned registers = 0;
  unsigned static_shared_bytes = 0;
  unsigned local_bytes = 0;
  unsigned spilled_bytes = 0;  // bytes of registers that are stored to local memory
  unsigned max_threads_per_block = 0;
  bool cooperative = false;  // synchronizes its whole grid
};

// A compiled cuda block. Its kernels are those that the host program launches and the block
// declares.
struct compiled_block {
  std::string code;         // shared object or cubin
  std::string normal_form;  // of its assembly text
  std::vector<kernel_facts> kernels;
  std::string log;
};

// Thrown inside a compiler to end the compilation of a block; never leaves its compile() function.
// Messages name lines of the block: "cuda:12: ...".
struct block_refused {
  program_failure why;
  explicit block_refused(std::string message, Outcome outcome = Outcome::COMPILE_ERROR,
                         bool is_transient = false)
      : why{outcome, "", std::move(message), is_transient} {}
};

}  // namespace hone
