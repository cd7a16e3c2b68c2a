#pragma once

#include <cuda.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "messages/record.hpp"
#include "messages/schema/task.capnp.h"

namespace hone {

// The driver said no: what was tried, and its name for what went wrong.
struct cuda_error : std::runtime_error {
  cuda_error(const std::string& tried, CUresult status_, const std::string& says) : std::runtime_error(tried + ": " + says), status(status_) {}
  CUresult status;
};

// CUDA's driver interface, loaded at run time: a machine without it does everything else. Safe on any thread.
class cuda_driver {
 public:
  // The driver of this machine, or why there is none, in a sentence. Loaded once a process.
  static const std::variant<cuda_driver, std::string>& load();

  decltype(&cuDeviceGetCount) device_get_count;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetName) device_get_name;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuDeviceTotalMem) device_total_memory;
  decltype(&cuDevicePrimaryCtxRetain) primary_context_retain;
  decltype(&cuDevicePrimaryCtxRelease) primary_context_release;
  decltype(&cuCtxSetCurrent) context_set_current;
  decltype(&cuModuleLoadData) module_load_data;
  decltype(&cuModuleUnload) module_unload;
  decltype(&cuModuleGetFunction) module_get_function;
  decltype(&cuFuncGetAttribute) function_get_attribute;

  // Throws cuda_error where the driver did not succeed at what was tried.
  void check(CUresult status, const std::string& tried) const;
  int attribute(CUdevice of, CUdevice_attribute which) const;

 private:
  cuda_driver() = default;
  decltype(&cuGetErrorName) get_error_name_;
  decltype(&cuGetErrorString) get_error_string_;
};

// A GPU as users name it ("cuda:0") and as scores are compared within: "h200-sm90-580.159-cu130".
struct cuda_device_facts {
  int ordinal = 0;
  std::string model;           // "NVIDIA H200"
  std::string architecture;    // what its code is compiled for: "sm_90a"
  std::string driver;          // "580.159.04"
  std::uint64_t memory_bytes = 0;
  int multiprocessors = 0;
  record<schema::DeviceType> type;
};

// All GPUs that this process sees. Throws std::runtime_error, in a sentence, where there is no driver or it does not work.
std::vector<cuda_device_facts> find_cuda_devices();

// The type's name from what it is made of; model names lose maker and memory size: ("NVIDIA H200", 9, 0, "580.159.04") ->
// "h200-sm90-580.159-cu130".
std::string cuda_device_type_name(const std::string& model, int major, int minor, const std::string& driver);

}  // namespace hone
