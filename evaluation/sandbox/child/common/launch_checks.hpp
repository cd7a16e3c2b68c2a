#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

// What a kernel's parameter is, whatever the device: as block_abi::parameter and
// schema::Kernel::Parameter number it.
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

inline constexpr std::int64_t max_shared_bytes = 227 * 1024;

// CUDA's limits, the same on every device. All of these throw program_error (launch_error).
launch_size checked_grid(const std::string& kernel, const std::vector<std::int64_t>& grid);
launch_size checked_block(const std::string& kernel, const std::vector<std::int64_t>& block);
void check_shared_bytes(const std::string& kernel, std::int64_t bytes);

// The arguments of a launch in the form that the kernel's parameters have: tensors as pointers,
// ints as 4 or 8 bytes (checked for range), floats as 4 or 8 bytes, bools as one.
class marshalled_arguments {
 public:
  // `on_gpu`: tensors must lie in a GPU's memory.
  marshalled_arguments(const std::string& kernel, const std::vector<c10::IValue>& arguments,
                       const std::vector<parameter_facts>& parameters, bool on_gpu);
  // An address for each argument, as launches take them; they live as long as this.
  void** addresses() { return addresses_.data(); }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<void*> addresses_;
};

}  // namespace hone
