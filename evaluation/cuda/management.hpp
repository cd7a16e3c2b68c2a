#pragma once

#include <string>

namespace hone {

// What NVML says of one GPU, loaded at run time. Where there is no NVML it knows nothing, which is fine. One thread.
class gpu_management {
 public:
  explicit gpu_management(const std::string& bus_id);

  double clock_mhz() const;       // of the multiprocessors, now; 0: unknown
  double temperature_c() const;   // 0: unknown
  // Slowed down by heat, by the board's power brake or by an external signal. The power limit that every long product meets is not meant:
  // it meets both sides alike.
  bool is_throttled() const;

 private:
  void* device_ = nullptr;  // nvmlDevice_t
};

}  // namespace hone
