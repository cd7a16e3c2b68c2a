#pragma once

#include <string>

namespace hone {

// Names the throttling reasons in NVML's mask that make times worthless: heat, the board's power
// brake, and an external signal. Omits the power limit, which every long matrix product reaches: it
// affects both sides alike.
std::string describe_throttling(unsigned long long reasons);

// Reads the state of one GPU from NVML, which is loaded at run time. Without NVML all values are
// unknown, which is no error. Confined to one thread.
class gpu_management {
 public:
  explicit gpu_management(const std::string& bus_id);

  // Returns the current clock rate of the multiprocessors, or 0 if it is unknown.
  double clock_mhz() const;
  // Returns the temperature, or 0 if it is unknown.
  double temperature_c() const;
  // Returns the reasons that slow the GPU down now, such as "hardware thermal, power brake". Empty
  // if there is none or if the reasons are unknown.
  std::string throttled_by() const;

 private:
  void* device_ = nullptr;  // nvmlDevice_t
};

}  // namespace hone
