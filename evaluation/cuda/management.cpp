#include "evaluation/cuda/management.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace hone {
namespace {

// The few of NVML's calls that are used; its header is not among CUDA's wheels. Numbers are nvml.h's.
constexpr int success = 0;
constexpr unsigned clock_sm = 1;
constexpr unsigned sensor_gpu = 0;
constexpr unsigned long long hardware_slowdown = 0x8;
constexpr unsigned long long software_thermal = 0x20;
constexpr unsigned long long hardware_thermal = 0x40;
constexpr unsigned long long power_brake = 0x80;

struct nvml_calls {
  int (*init)() = nullptr;
  int (*handle)(const char*, void**) = nullptr;
  int (*clock)(void*, unsigned, unsigned*) = nullptr;
  int (*temperature)(void*, unsigned, unsigned*) = nullptr;
  int (*throttle_reasons)(void*, unsigned long long*) = nullptr;
  bool works = false;

  nvml_calls() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto bind = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
      return to != nullptr;
    };
    works = bind(init, "nvmlInit_v2") && bind(handle, "nvmlDeviceGetHandleByPciBusId_v2") && bind(clock, "nvmlDeviceGetClockInfo") && bind(temperature, "nvmlDeviceGetTemperature") &&
            bind(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") && init() == success;
  }
};

const nvml_calls& nvml() {
  static const nvml_calls calls;
  return calls;
}

}  // namespace

gpu_management::gpu_management(const std::string& bus_id) {
  if (nvml().works && nvml().handle(bus_id.c_str(), &device_) != success) device_ = nullptr;
}

double gpu_management::clock_mhz() const {
  unsigned mhz = 0;
  return device_ != nullptr && nvml().clock(device_, clock_sm, &mhz) == success ? mhz : 0;
}

double gpu_management::temperature_c() const {
  unsigned celsius = 0;
  return device_ != nullptr && nvml().temperature(device_, sensor_gpu, &celsius) == success ? celsius : 0;
}

bool gpu_management::is_throttled() const {
  unsigned long long reasons = 0;
  if (device_ == nullptr || nvml().throttle_reasons(device_, &reasons) != success) return false;
  return (reasons & (hardware_slowdown | software_thermal | hardware_thermal | power_brake)) != 0;
}

}  // namespace hone
