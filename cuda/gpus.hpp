#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/record.hpp"
#include "messages/schema/task.capnp.h"

namespace hone {

// Facts about one GPU. Users name it by its ordinal ("cuda:0"). Scores are comparable within its
// device type ("h200-sm90-580.159-cu130").
struct gpu_facts {
  int ordinal = 0;
  std::string model;         // "NVIDIA H200"
  std::string architecture;  // target of its device code: "sm_90a"
  std::string driver;        // "580.159.04"
  std::string bus_id;        // "0000:1b:00.0"
  std::string uuid;          // "GPU-5f3a...", of this GPU or, where it has MIG slices, of the slice
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  // Peak, from clock rate and bus width; 0 if the driver does not report them.
  double memory_gb_per_second = 0;
  // True if device code can read and write all memory of the process that launched it
  // (heterogeneous memory management, or a shared page table). The judge's state in a candidate's
  // process, above all its clocks, is then as accessible to the candidate as in a sandbox on a CPU.
  bool reaches_host_memory = false;
  record<schema::DeviceType> type;
};

// Version of the CUDA toolkit that device code is compiled with and that LibTorch was built for.
// Part of the name of a device type ("cu130").
inline constexpr const char* cuda_toolkit_version = "13.0";

// Returns all GPUs that this process can see. Throws std::runtime_error with a message of one
// sentence if there is no driver or if the driver does not work.
std::vector<gpu_facts> find_gpus();

// Returns the UUID of a GPU as text, from its 16 bytes.
std::string gpu_uuid(std::string_view bytes);

// Returns the name of a device type. The name omits the maker and the memory size of the model:
// ("NVIDIA H200", 9, 0, "580.159.04") -> "h200-sm90-580.159-cu130".
std::string gpu_type_name(const std::string& model, int major, int minor,
                          const std::string& driver);

}  // namespace hone
