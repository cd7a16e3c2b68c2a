#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/record.hpp"
#include "messages/schema/task.capnp.h"

namespace hone {

// A GPU as users name it ("cuda:0") and as scores are compared within: "h200-sm90-580.159-cu130".
struct gpu_facts {
  int ordinal = 0;
  std::string model;         // "NVIDIA H200"
  std::string architecture;  // what its code is compiled for: "sm_90a"
  std::string driver;        // "580.159.04"
  std::string bus_id;        // "0000:1b:00.0"
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  double memory_gb_per_second = 0;  // peak, from clock and bus width; 0: the driver does not say
  // Device code can read and write all memory of the process that launched it (heterogeneous memory
  // management, or a shared page table): what a candidate's process holds of the judge's, its
  // clocks above all, is then no further from it than in a CPU's sandbox.
  bool reaches_host_memory = false;
  record<schema::DeviceType> type;
};

// All GPUs that this process sees. Throws std::runtime_error, in a sentence, where there is no
// driver or it does not work.
std::vector<gpu_facts> find_gpus();

// The type's name from what it is made of; model names lose maker and memory size: ("NVIDIA H200",
// 9, 0, "580.159.04") -> "h200-sm90-580.159-cu130".
std::string gpu_type_name(const std::string& model, int major, int minor,
                          const std::string& driver);

}  // namespace hone
