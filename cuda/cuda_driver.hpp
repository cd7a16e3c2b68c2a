#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>
#include <variant>

namespace hone {

// A call of the driver failed. The message names the attempted operation and the driver's
// description of the error.
struct cuda_error : std::runtime_error {
  cuda_error(const std::string& tried, CUresult status_, const std::string& says)
      : std::runtime_error(tried + ": " + says), status(status_) {}
  CUresult status;
};

// The functions of CUDA's driver interface that are used. A name that cuda.h maps to a later
// version of the function refers to that version.
// clang-format off
#define HONE_CUDA_DRIVER_CALLS(X)                \
  X(cuInit)                                      \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceGetPCIBusId)                         \
  X(cuDeviceGetUuid)                             \
  X(cuDeviceTotalMem)                            \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxGetCurrent)                             \
  X(cuCtxSetCurrent)                             \
  X(cuCtxGetLimit)                               \
  X(cuCtxSetLimit)                               \
  X(cuCtxResetPersistingL2Cache)                 \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemGetInfo)                                \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyDtoDAsync)                           \
  X(cuMemsetD8Async)                             \
  X(cuIpcGetMemHandle)                           \
  X(cuIpcOpenMemHandle)                          \
  X(cuIpcGetEventHandle)                         \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy)                             \
  X(cuStreamSynchronize)                         \
  X(cuStreamBeginCapture)                        \
  X(cuStreamEndCapture)                          \
  X(cuGraphInstantiateWithFlags)                 \
  X(cuGraphLaunch)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)                          \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncGetParamInfo)                          \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuLaunchKernel)                              \
  X(cuLaunchKernelEx)                            \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor)
// clang-format on

// CUDA's driver interface, loaded at run time, so that the program also works on machines without
// it. Safe on any thread.
class cuda_driver {
 public:
  // Returns the machine's driver, or one sentence on why there is none. Loads it on the first call
  // of the process.
  static const std::variant<cuda_driver, std::string>& load();
  // Returns the driver. Throws std::runtime_error with the sentence of load() if there is none.
  static const cuda_driver& get();

// NOLINTNEXTLINE(bugprone-macro-parentheses): the name of a member takes none.
#define HONE_CUDA_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  HONE_CUDA_DRIVER_CALLS(HONE_CUDA_DRIVER_MEMBER)
#undef HONE_CUDA_DRIVER_MEMBER

  // Throws cuda_error if `status` is an error. `tried` names the operation.
  void check(CUresult status, const std::string& tried) const {
    if (status != CUDA_SUCCESS) fail(status, tried);
  }
  // Returns text such as "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)".
  std::string describe(CUresult status) const;
  // Returns an attribute of a device. Throws cuda_error.
  int attribute(CUdevice of, CUdevice_attribute which) const;

 private:
  cuda_driver() = default;
  [[noreturn]] void fail(CUresult status, const std::string& tried) const;
};

}  // namespace hone
