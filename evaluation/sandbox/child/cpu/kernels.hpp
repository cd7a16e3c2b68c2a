#pragma once

#include <memory>
#include <string>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

// The kernels of a loaded shared object. A launch passes all checks that CUDA would make before
// anything runs.
class cpu_kernels final : public kernel_launcher {
 public:
  // Loads the shared object at `path`. Throws std::runtime_error.
  explicit cpu_kernels(const std::string& path);
  ~cpu_kernels() override;

  // Fills static and dynamic shared memory with a byte of poison, so that nothing reads zeros
  // there.
  void poison_shared(unsigned char poison);
  // Returns true if a launch wrote beyond the dynamic shared memory that it asked for.
  bool shared_overrun() const;

  void launch(const std::string& kernel, const std::vector<std::int64_t>& grid,
              const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
              const std::vector<c10::IValue>& arguments) override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
