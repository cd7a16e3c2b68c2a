#include "evaluation/devices/cuda_driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <sstream>

namespace hone {
namespace {

// Of the toolkit that device code is compiled with, and that LibTorch was built for.
constexpr const char* toolkit = "cu130";

// Entry points carry a version behind their name where an interface has changed.
template <class Function>
bool bind(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

std::string driver_version() {
  std::ifstream in("/sys/module/nvidia/version");
  std::string version;
  if (std::getline(in, version) && !version.empty()) return version;
  // In a container that hides /sys: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..."
  std::ifstream proc("/proc/driver/nvidia/version");
  for (std::string word; proc >> word;) {
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && std::count(word.begin(), word.end(), '.') >= 1) return word;
  }
  return "unknown";
}

// Architectures from Hopper on have instructions that only their own code may use: the suffix a.
std::string architecture_name(int major, int minor) { return "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : ""); }

}  // namespace

const std::variant<cuda_driver, std::string>& cuda_driver::load() {
  static const std::variant<cuda_driver, std::string> loaded = []() -> std::variant<cuda_driver, std::string> {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "this machine has no NVIDIA driver (libcuda.so.1 cannot be loaded)";
    cuda_driver d;
    decltype(&cuInit) init = nullptr;
    const bool complete = bind(library, "cuInit", init) && bind(library, "cuDeviceGetCount", d.device_get_count) && bind(library, "cuDeviceGet", d.device_get) && bind(library, "cuDeviceGetName", d.device_get_name) &&
                          bind(library, "cuDeviceGetAttribute", d.device_get_attribute) && bind(library, "cuDeviceTotalMem_v2", d.device_total_memory) &&
                          bind(library, "cuDevicePrimaryCtxRetain", d.primary_context_retain) && bind(library, "cuDevicePrimaryCtxRelease_v2", d.primary_context_release) &&
                          bind(library, "cuCtxSetCurrent", d.context_set_current) && bind(library, "cuModuleLoadData", d.module_load_data) && bind(library, "cuModuleUnload", d.module_unload) &&
                          bind(library, "cuModuleGetFunction", d.module_get_function) && bind(library, "cuFuncGetAttribute", d.function_get_attribute) && bind(library, "cuGetErrorName", d.get_error_name_) &&
                          bind(library, "cuGetErrorString", d.get_error_string_);
    if (!complete) return "this machine's NVIDIA driver is too old";
    if (const CUresult status = init(0); status != CUDA_SUCCESS) {
      const char* text = nullptr;
      d.get_error_string_(status, &text);
      return "the NVIDIA driver does not start: " + std::string(text != nullptr ? text : "unknown error");
    }
    return d;
  }();
  return loaded;
}

void cuda_driver::check(CUresult status, const std::string& tried) const {
  if (status == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* text = nullptr;
  get_error_name_(status, &name);
  get_error_string_(status, &text);
  throw cuda_error(tried, status, std::string(text != nullptr ? text : "unknown error") + " (" + (name != nullptr ? name : std::to_string(status)) + ")");
}

int cuda_driver::attribute(CUdevice of, CUdevice_attribute which) const {
  int value = 0;
  check(device_get_attribute(&value, which, of), "reading a GPU's attribute");
  return value;
}

std::string cuda_device_type_name(const std::string& model, int major, int minor, const std::string& driver) {
  std::string name;
  std::istringstream words(model);
  for (std::string word; words >> word;) {
    if (word == "NVIDIA" || word == "GeForce" || word == "Tesla" || word.ends_with("GB")) continue;
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-'; });
    name += (name.empty() ? "" : "-") + word;
  }
  const std::size_t second_dot = driver.find('.', driver.find('.') + 1);
  return name + "-sm" + std::to_string(major) + std::to_string(minor) + "-" + driver.substr(0, second_dot) + "-" + toolkit;
}

std::vector<cuda_device_facts> find_cuda_devices() {
  const auto& loaded = cuda_driver::load();
  if (const auto* why = std::get_if<std::string>(&loaded)) throw std::runtime_error(*why);
  const auto& driver = std::get<cuda_driver>(loaded);
  int count = 0;
  driver.check(driver.device_get_count(&count), "counting GPUs");
  const std::string version = driver_version();
  std::vector<cuda_device_facts> all;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    driver.check(driver.device_get(&device, i), "finding GPU " + std::to_string(i));
    std::array<char, 256> model{};
    driver.check(driver.device_get_name(model.data(), static_cast<int>(model.size()), device), "naming GPU " + std::to_string(i));
    std::size_t bytes = 0;
    driver.check(driver.device_total_memory(&bytes, device), "measuring GPU " + std::to_string(i));
    const int major = driver.attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = driver.attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    cuda_device_facts facts;
    facts.ordinal = i;
    facts.model = model.data();
    facts.architecture = architecture_name(major, minor);
    facts.driver = version;
    facts.memory_bytes = bytes;
    facts.multiprocessors = driver.attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    record_builder<schema::DeviceType> type;
    type->setName(cuda_device_type_name(facts.model, major, minor, version));
    type->setKind(schema::DeviceType::Kind::CUDA);
    type->setTarget(facts.architecture);
    facts.type = type.finish();
    all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace hone
