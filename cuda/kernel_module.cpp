#include "cuda/kernel_module.hpp"

#include <stdexcept>

#include "cuda/nvrtc_library.hpp"

namespace hone {
namespace {

nvrtc_library::result compile(const std::string& source, const std::string& architecture,
                              const std::vector<std::string>& defines,
                              const std::vector<std::string>& kernels) {
  const nvrtc_library nvrtc;
  std::vector<std::string> options = {"--gpu-architecture=" + architecture, "--std=c++17"};
  for (const std::string& folder : nvrtc.include_folders()) options.push_back("-I" + folder);
  for (const std::string& define : defines) options.push_back("-D" + define);
  nvrtc_library::result made = nvrtc.compile(source, options, kernels);
  if (!made.compiled) throw std::runtime_error("own kernels do not compile: " + made.log);
  return made;
}

}  // namespace

kernel_module::kernel_module(int gpu, const std::string& source,
                             const std::vector<std::string>& defines,
                             const std::vector<std::string>& kernels)
    : driver_(cuda_driver::get()), names_(kernels) {
  driver_.check(driver_.cuDeviceGet(&device_, gpu), "finding a GPU");
  const int major = driver_.attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = driver_.attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  const nvrtc_library::result made =
      compile(source, "sm_" + std::to_string(major * 10 + minor), defines, kernels);
  CUcontext before = nullptr;
  driver_.check(driver_.cuCtxGetCurrent(&before), "reading a thread's context");
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "using a GPU's context");
  driver_.check(driver_.cuCtxSetCurrent(context_), "using a GPU's context");
  driver_.check(driver_.cuModuleLoadData(&module_, made.code.data()), "loading own kernels");
  for (const std::string& symbol : made.symbols) {
    functions_.emplace_back();
    driver_.check(driver_.cuModuleGetFunction(&functions_.back(), module_, symbol.c_str()),
                  "finding the kernel " + symbol);
  }
  if (before != nullptr) driver_.check(driver_.cuCtxSetCurrent(before), "using a GPU's context");
}

kernel_module::~kernel_module() {
  if (module_ != nullptr && driver_.cuCtxSetCurrent(context_) == CUDA_SUCCESS)
    (void)driver_.cuModuleUnload(module_);
  if (context_ != nullptr) (void)driver_.cuDevicePrimaryCtxRelease(device_);
}

void kernel_module::launch_with(std::size_t kernel, CUstream stream, const launch_shape& shape,
                                void** arguments) const {
  // A thread that has made no call of the runtime has no context yet.
  CUcontext current = nullptr;
  driver_.check(driver_.cuCtxGetCurrent(&current), "reading a thread's context");
  if (current == nullptr) driver_.check(driver_.cuCtxSetCurrent(context_), "using a GPU's context");
  driver_.check(
      driver_.cuLaunchKernel(functions_[kernel], shape.blocks_x, shape.blocks_y, 1, shape.threads_x,
                             shape.threads_y, 1, 0, stream, arguments, nullptr),
      "launching " + names_[kernel]);
}

}  // namespace hone
