#include "cuda/management.hpp"

#include <dlfcn.h>

#include <array>
#include <type_traits>
#include <utility>

namespace hone {
namespace {

// The NVML functions that are used are declared here, because CUDA's wheels do not contain nvml.h.
// The numbers are from nvml.h.
constexpr int success = 0;
constexpr unsigned clock_sm = 1;
constexpr unsigned sensor_gpu = 0;
constexpr int unavailable = -1;
constexpr std::array<std::pair<unsigned long long, const char*>, 4> throttling = {
    {{0x8, "hardware slowdown"},
     {0x20, "software thermal"},
     {0x40, "hardware thermal"},
     {0x80, "power brake"}}};

// NVML's functions. Those that the machine lacks return `unavailable`.
struct nvml_calls {
  int (*init)() = [] { return unavailable; };
  int (*handle)(const char*, void**) = [](auto...) { return unavailable; };
  int (*clock)(void*, unsigned, unsigned*) = [](auto...) { return unavailable; };
  int (*temperature)(void*, unsigned, unsigned*) = [](auto...) { return unavailable; };
  int (*throttle_reasons)(void*, unsigned long long*) = [](auto...) { return unavailable; };
  bool works = false;

  nvml_calls() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto bind = [&](auto& to, const char* name) {
      void* const found = dlsym(library, name);
      if (found != nullptr) to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(found);
      return found != nullptr;
    };
    works =
        bind(init, "nvmlInit_v2") && bind(handle, "nvmlDeviceGetHandleByPciBusId_v2") &&
        bind(clock, "nvmlDeviceGetClockInfo") && bind(temperature, "nvmlDeviceGetTemperature") &&
        bind(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") && init() == success;
  }
};

const nvml_calls& nvml() {
  static const nvml_calls calls;
  return calls;
}

}  // namespace

std::string describe_throttling(unsigned long long reasons) {
  std::string names;
  for (const auto& [bit, name] : throttling) {
    if ((reasons & bit) != 0) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

gpu_management::gpu_management(const std::string& bus_id) {
  if (nvml().works && nvml().handle(bus_id.c_str(), &device_) != success) device_ = nullptr;
}

double gpu_management::clock_mhz() const {
  unsigned mhz = 0;
  return device_ != nullptr && nvml().clock(device_, clock_sm, &mhz) == success ? mhz : 0;
}

double gpu_management::temperature_c() const {
  unsigned celsius = 0;
  return device_ != nullptr && nvml().temperature(device_, sensor_gpu, &celsius) == success
             ? celsius
             : 0;
}

std::string gpu_management::throttled_by() const {
  unsigned long long reasons = 0;
  if (device_ == nullptr || nvml().throttle_reasons(device_, &reasons) != success) return "";
  return describe_throttling(reasons);
}

}  // namespace hone
