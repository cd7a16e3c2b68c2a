#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>
#include <variant>

namespace hone {

// The driver said no: what was tried, and its name for what went wrong.
struct cuda_error : std::runtime_error {
  cuda_error(const std::string& tried, CUresult status_, const std::string& says)
      : std::runtime_error(tried + ": " + says), status(status_) {}
  CUresult status;
};

// What is used of CUDA's driver interface. Names that the header maps to a later version stand for
// that version.
#define HONE_CUDA_DRIVER_CALLS(X)                                                                 \
  X(cuInit)                                                                                       \
  X(cuGetErrorName)                                                                               \
  X(cuGetErrorString) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName)                       \
      X(cuDeviceGetAttribute) X(cuDeviceGetPCIBusId) X(cuDeviceTotalMem)                          \
          X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent)             \
              X(cuCtxSetLimit) X(cuCtxResetPersistingL2Cache) X(cuMemAlloc) X(cuMemFree)          \
                  X(cuMemGetInfo) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync)  \
                      X(cuMemsetD8Async) X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle)               \
                          X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize)             \
                              X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction)        \
                                  X(cuFuncGetParamInfo) X(cuFuncGetAttribute)                     \
                                      X(cuFuncSetAttribute) X(cuLaunchKernel) X(cuLaunchKernelEx) \
                                          X(cuOccupancyMaxActiveBlocksPerMultiprocessor)

// CUDA's driver interface, loaded at run time: a machine without it does everything else. Safe on
// any thread.
class cuda_driver {
 public:
  // The driver of this machine, or why there is none, in a sentence. Loaded once a process.
  static const std::variant<cuda_driver, std::string>& load();
  // The same where there must be one: throws std::runtime_error with the sentence.
  static const cuda_driver& get();

#define HONE_CUDA_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  HONE_CUDA_DRIVER_CALLS(HONE_CUDA_DRIVER_MEMBER)
#undef HONE_CUDA_DRIVER_MEMBER

  // Throws cuda_error where the driver did not succeed at what was tried.
  void check(CUresult status, const std::string& tried) const {
    if (status != CUDA_SUCCESS) fail(status, tried);
  }
  // "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"
  std::string describe(CUresult status) const;
  int attribute(CUdevice of, CUdevice_attribute which) const;

 private:
  cuda_driver() = default;
  [[noreturn]] void fail(CUresult status, const std::string& tried) const;
};

}  // namespace hone
