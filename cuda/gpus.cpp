#include "cuda/gpus.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <sstream>

#include "cuda/cuda_driver.hpp"

namespace hone {
namespace {

std::string without_dots(std::string version) {
  std::erase(version, '.');
  return version;
}

std::string driver_version() {
  std::ifstream in("/sys/module/nvidia/version");
  std::string version;
  if (std::getline(in, version) && !version.empty()) return version;
  // A container may hide /sys. The following file holds text such as "NVRM version: NVIDIA UNIX
  // x86_64 Kernel Module 580.159.04".
  std::ifstream proc("/proc/driver/nvidia/version");
  for (std::string word; proc >> word;) {
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
        std::count(word.begin(), word.end(), '.') >= 1)
      return word;
  }
  return "unknown";
}

// From Hopper on, architectures have instructions that are available only in code for exactly that
// architecture, which has the suffix "a".
std::string architecture_name(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : "");
}

gpu_facts describe(const cuda_driver& driver, int ordinal, const std::string& version) {
  const std::string name = "GPU " + std::to_string(ordinal);
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, ordinal), "finding " + name);
  std::array<char, 256> model{};
  driver.check(driver.cuDeviceGetName(model.data(), static_cast<int>(model.size()), device),
               "naming " + name);
  std::array<char, 64> bus{};
  driver.check(driver.cuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device),
               "placing " + name);
  CUuuid uuid{};
  driver.check(driver.cuDeviceGetUuid(&uuid, device), "identifying " + name);
  std::size_t bytes = 0;
  driver.check(driver.cuDeviceTotalMem(&bytes, device), "measuring " + name);
  const int major = driver.attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = driver.attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  gpu_facts facts;
  facts.ordinal = ordinal;
  facts.model = model.data();
  facts.architecture = architecture_name(major, minor);
  facts.driver = version;
  facts.bus_id = bus.data();
  facts.uuid = gpu_uuid({uuid.bytes, sizeof uuid.bytes});
  facts.memory_bytes = bytes;
  facts.l2_bytes =
      static_cast<std::uint64_t>(driver.attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  facts.multiprocessors = driver.attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.reaches_host_memory =
      driver.attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
  facts.threads_per_multiprocessor =
      driver.attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  // There are two transfers per clock cycle. The clock rate is in kHz, the bus width in bits.
  facts.memory_gb_per_second =
      2.0 * driver.attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
      driver.attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8 / 1e6;
  record_builder<schema::DeviceType> type;
  type->setName(gpu_type_name(facts.model, major, minor, version));
  type->setKind(schema::DeviceType::Kind::CUDA);
  type->setTarget(facts.architecture);
  facts.type = type.finish();
  return facts;
}

}  // namespace

std::string gpu_uuid(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::string gpu_type_name(const std::string& model, int major, int minor,
                          const std::string& driver) {
  std::string name;
  std::istringstream words(model);
  for (std::string word; words >> word;) {
    // "80GB", but not "A100-SXM4-80GB", because that model also exists with 40 GB.
    const bool is_size =
        word.ends_with("GB") && word.find_first_not_of("0123456789") == word.size() - 2;
    if (word == "NVIDIA" || word == "GeForce" || word == "Tesla" || is_size) continue;
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
      return std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
    });
    name += (name.empty() ? "" : "-") + word;
  }
  const std::size_t second_dot = driver.find('.', driver.find('.') + 1);
  return name + "-sm" + std::to_string(major) + std::to_string(minor) + "-" +
         driver.substr(0, second_dot) + "-cu" + without_dots(cuda_toolkit_version);
}

std::vector<gpu_facts> find_gpus() {
  const cuda_driver& driver = cuda_driver::get();
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "counting GPUs");
  const std::string version = driver_version();
  std::vector<gpu_facts> all;
  for (int i = 0; i < count; ++i) all.push_back(describe(driver, i, version));
  return all;
}

}  // namespace hone
