#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

// Kind and size of a kernel's parameter on any device. The kinds are numbered as in
// block_abi::parameter and schema::Kernel::Parameter.
struct parameter_facts {
  enum class kinds : unsigned { pointer, integer, floating, boolean, other };
  kinds kind = kinds::pointer;
  unsigned bytes = 0;
};

struct launch_size {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

// Most dynamic shared memory of a launch.
inline constexpr std::int64_t max_shared_bytes = 227 << 10;

// The following functions check CUDA's limits, which are the same on every device. They throw
// program_error (launch_error). A grid or block has one to three extents; missing extents are 1.
launch_size checked_grid(const std::string& kernel, const std::vector<std::int64_t>& grid);
launch_size checked_block(const std::string& kernel, const std::vector<std::int64_t>& block);
void check_shared_bytes(const std::string& kernel, std::int64_t bytes);

// The arguments of a launch in the form of the kernel's parameters: tensors as pointers, ints as 4
// or 8 bytes (checked for range), floats as 4 or 8 bytes, bools as one byte.
class marshaled_arguments {
 public:
  // Throws program_error (launch_error) if an argument does not fit its parameter. `on_gpu`:
  // tensors must lie in a GPU's memory.
  marshaled_arguments(const std::string& kernel, const std::vector<c10::IValue>& arguments,
                      const std::vector<parameter_facts>& parameters, bool on_gpu);
  // Returns the address of each argument, as launches take them. The addresses are valid as long as
  // this object.
  void** addresses() { return addresses_.data(); }
  // Returns the arguments themselves, a word each.
  const std::vector<std::uint64_t>& values() const { return values_; }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<void*> addresses_;
};

}  // namespace hone
