#pragma once

#include <future>
#include <string>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"

namespace hone {

// The judge's own kernels (judge_kernels/), compiled for one GPU. They are compiled on separate
// threads, while the GPU's processes start. Confined to one thread.
class own_kernels {
 public:
  // A part of the kernels, which is compiled in parallel with the others.
  struct part {
    std::string source;  // a cuda block
    std::vector<std::string> kernels;
  };
  static const std::vector<part>& parts();

  // Begins to compile for an architecture ("sm_90a"), without waiting.
  explicit own_kernels(const std::string& architecture);

  // Return what was compiled, and wait for it. Throw std::runtime_error.
  const std::vector<compiled_block>& blocks();  // by part
  const compiled_block& tools();  // the block with the kernels that programs' processes need
  // Returns the compiler's name; empty before the first call of blocks() or tools().
  const std::string& toolchain() const { return toolchain_; }

 private:
  struct compiled_part {
    std::string toolchain;
    compiled_block block;
  };
  static compiled_part compile(const part& one, const std::string& architecture);

  std::vector<std::future<compiled_part>> compiling_;
  std::string toolchain_;
  std::vector<compiled_block> blocks_;
};

}  // namespace hone
