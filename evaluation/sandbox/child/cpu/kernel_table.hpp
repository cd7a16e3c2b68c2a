#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/sandbox/child/common/launch_checks.hpp"
#include "evaluation/sandbox/child/cpu/kernel_queue.hpp"
#include "evaluation/sandbox/protocol.capnp.h"

namespace hone {

// A launch that has passed all checks that CUDA would make.
struct checked_launch {
  queued_launch what;
  std::vector<std::uint64_t> arguments;  // a word each
};

// The names and parameters of the kernels that a candidate's process has loaded.
class kernel_table {
 public:
  kernel_table() = default;
  explicit kernel_table(schema::LoadedKernels::Reader loaded);

  // Returns nullopt for a grid without blocks. Throws program_error (launch_error).
  std::optional<checked_launch> check(const std::string& kernel,
                                      const std::vector<std::int64_t>& grid,
                                      const std::vector<std::int64_t>& block,
                                      std::int64_t shared_bytes,
                                      const std::vector<c10::IValue>& arguments) const;

 private:
  struct known_kernel {
    std::string name;
    std::vector<parameter_facts> parameters;
  };

  std::vector<known_kernel> kernels_;
};

}  // namespace hone
