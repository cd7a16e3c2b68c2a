#pragma once

#include <array>
#include <string>
#include <vector>

#include "cuda/cuda_driver.hpp"

namespace hone {

// The blocks of a launch and the threads of a block, in x and y.
struct launch_shape {
  unsigned blocks_x = 1;
  unsigned blocks_y = 1;
  unsigned threads_x = 1;
  unsigned threads_y = 1;
};

// Trusted kernels, compiled by NVRTC in this process and loaded into the primary context of a GPU,
// the one that LibTorch uses. Candidates' kernels never come here: separate programs compile
// and run them (evaluation/). Launches may come from any thread; construct and destroy on one.
class kernel_module {
 public:
  // `defines` holds macros such as "WIDTH=64". `kernels` are C++ name expressions such as
  // "add<32>". Throws std::runtime_error, with NVRTC's log if the source does not compile.
  kernel_module(int gpu, const std::string& source, const std::vector<std::string>& defines,
                const std::vector<std::string>& kernels);
  kernel_module(const kernel_module&) = delete;
  kernel_module& operator=(const kernel_module&) = delete;
  ~kernel_module();

  // Queues kernel number `kernel`, in the order of the constructor, on a stream. `arguments` are
  // converted to no other type, so they must have the types of the kernel's parameters. Throws
  // cuda_error.
  template <class... Arguments>
  void launch(std::size_t kernel, CUstream stream, const launch_shape& shape,
              Arguments... arguments) const {
    std::array<void*, sizeof...(Arguments)> addresses = {static_cast<void*>(&arguments)...};
    launch_with(kernel, stream, shape, addresses.data());
  }

 private:
  void launch_with(std::size_t kernel, CUstream stream, const launch_shape& shape,
                   void** arguments) const;

  const cuda_driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::vector<CUfunction> functions_;
  std::vector<std::string> names_;
};

}  // namespace hone
