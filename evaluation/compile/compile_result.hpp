#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "messages/names.hpp"

namespace hone {

struct kernel_parameter {
  schema::Kernel::Parameter::Kind kind = schema::Kernel::Parameter::Kind::OTHER;
  unsigned bytes = 0;
  bool operator==(const kernel_parameter&) const = default;
};

struct kernel_facts {
  std::string name;
  std::vector<kernel_parameter> parameters;
  std::string symbol{};    // in the cubin
  unsigned registers = 0;  // CUDA only, as the following
  unsigned static_shared_bytes = 0;
  unsigned local_bytes = 0;
  unsigned spilled_bytes = 0;  // of registers, as they are stored
  unsigned max_threads_per_block = 0;
  bool cooperative = false;  // synchronises its whole grid
};

// A cuda block, compiled. Kernels are those that the host program launches and the block declares.
struct compiled_block {
  std::string code;  // shared object or cubin
  std::vector<kernel_facts> kernels;
  std::string log;
};

// What is wrong with the variant; positions are lines of the block ("cuda:12: ...").
struct compile_failure {
  Outcome outcome = Outcome::COMPILE_ERROR;
  std::string message;
  bool may_be_chance = false;  // the machine was busy, perhaps: another time it may compile
};

using compile_result = std::variant<compiled_block, compile_failure>;

}  // namespace hone
