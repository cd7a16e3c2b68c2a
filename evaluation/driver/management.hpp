#pragma once

#include <string>

namespace hone {

// Of NVML's mask of reasons those that make times worthless: heat, the board's power brake, an
// external signal. The power limit that every long product meets is not meant: it meets both sides
// alike.
std::string describe_throttling(unsigned long long reasons);

// What NVML says of one GPU, loaded at run time. Where there is no NVML it knows nothing, which is
// fine. One thread.
class gpu_management {
 public:
  explicit gpu_management(const std::string& bus_id);

  double clock_mhz() const;      // of the multiprocessors, now; 0: unknown
  double temperature_c() const;  // 0: unknown
  // What slows it down now: "hardware thermal, power brake". Empty: nothing, or nothing is known.
  std::string throttled_by() const;

 private:
  void* device_ = nullptr;  // nvmlDevice_t
};

}  // namespace hone
