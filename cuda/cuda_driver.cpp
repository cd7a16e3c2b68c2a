#include "cuda/cuda_driver.hpp"

#include <dlfcn.h>

#define HONE_QUOTED(text) #text
#define HONE_EXPANDED_AND_QUOTED(name) HONE_QUOTED(name)

namespace hone {

const std::variant<cuda_driver, std::string>& cuda_driver::load() {
  static const std::variant<cuda_driver, std::string> loaded =
      []() -> std::variant<cuda_driver, std::string> {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return "this machine has no NVIDIA driver (libcuda.so.1 cannot be loaded)";
    cuda_driver d;
    const char* missing = nullptr;
    const auto bind = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
      if (to == nullptr) missing = name;
    };
#define HONE_CUDA_DRIVER_BIND(name) bind(d.name, HONE_EXPANDED_AND_QUOTED(name));
    HONE_CUDA_DRIVER_CALLS(HONE_CUDA_DRIVER_BIND)
#undef HONE_CUDA_DRIVER_BIND
    if (missing != nullptr)
      return "this machine's NVIDIA driver is too old: it has no " + std::string(missing);
    if (const CUresult status = d.cuInit(0); status != CUDA_SUCCESS)
      return "the NVIDIA driver does not start: " + d.describe(status);
    return d;
  }();
  return loaded;
}

const cuda_driver& cuda_driver::get() {
  const auto& loaded = load();
  if (const auto* why = std::get_if<std::string>(&loaded)) throw std::runtime_error(*why);
  return std::get<cuda_driver>(loaded);
}

std::string cuda_driver::describe(CUresult status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(status, &name);
  cuGetErrorString(status, &text);
  return std::string(text != nullptr ? text : "unknown error") + " (" +
         (name != nullptr ? name : std::to_string(status)) + ")";
}

void cuda_driver::fail(CUresult status, const std::string& tried) const {
  throw cuda_error(tried, status, describe(status));
}

int cuda_driver::attribute(CUdevice of, CUdevice_attribute which) const {
  int value = 0;
  check(cuDeviceGetAttribute(&value, which, of), "reading a GPU's attribute");
  return value;
}

}  // namespace hone
