#include "policy/policy_device.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cuda/cuda_driver.hpp"
#include "policy/files.hpp"

namespace hone {

void set_policy_environment(double share) {
  static bool is_ours = std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr &&
                        std::getenv("PYTORCH_ALLOC_CONF") == nullptr;
  if (!is_ours) return;
  // Batches differ in length, and LibTorch's cache keeps blocks of each size that it ever had,
  // unless their memory can grow.
  std::string settings = "expandable_segments:True";
  if (share < 1) settings += ",per_process_memory_fraction:" + std::to_string(share);
  setenv("PYTORCH_CUDA_ALLOC_CONF", settings.c_str(), /*overwrite=*/1);
}

bool are_same_device(const std::string& a, const std::string& b) {
  const auto whole = [](const std::string& name) { return name == "cuda" ? "cuda:0" : name; };
  return whole(a) == whole(b);
}

void prepare_policy_device(const std::string& device) {
  if (device == "cpu") return;
  if (!device.starts_with("cuda"))
    throw policy_error("policy.device is '" + device + "', expected cpu, cuda or cuda:N");
  // The CUDA back end is not linked, because loading it would slow down every start of the program.
  static void* const library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    throw policy_error("policy.device is '" + device +
                       "', but LibTorch's CUDA back end cannot be loaded: " + dlerror());
  if (!at::hasCUDA())
    throw policy_error("policy.device is '" + device + "', but LibTorch finds no CUDA device");
}

std::string describe_failure(const std::exception& failure) {
  std::string text = failure.what();
  text.resize(std::min(text.size(), text.find("\nException raised from")));
  // "EXPRESSION INTERNAL ASSERT FAILED at FILE, please report a bug to PyTorch. WHY"
  if (text.find("INTERNAL ASSERT") != std::string::npos) {
    constexpr std::string_view advice = "please report a bug to PyTorch.";
    const std::size_t end = text.find(advice);
    const std::string why = end == std::string::npos ? "" : text.substr(end + advice.size());
    text = "LibTorch failed" + (why.find_first_not_of(" \n") == std::string::npos
                                    ? std::string(" without a reason")
                                    : ":" + why);
  }
  if (dynamic_cast<const c10::OutOfMemoryError*>(&failure) != nullptr)
    text +=
        " (the policy takes less with smaller policy.micro_batch_tokens, generation.memory_share "
        "or generation.slots, or with policy.recompute)";
  return text;
}

void finish_policy_work(const std::string& device) {
  if (device == "cpu") return;  // operators on the CPU are synchronous
  const c10::Device on(device);
  c10::impl::getDeviceGuardImpl(on.type())->synchronizeDevice(on.has_index() ? on.index()
                                                                             : c10::DeviceIndex{0});
}

std::uint64_t gpu_memory_of(const std::string& device) {
  if (device == "cpu") return 0;
  const c10::Device on(device);
  const cuda_driver& driver = cuda_driver::get();
  CUdevice gpu = 0;
  std::size_t bytes = 0;
  driver.check(driver.cuDeviceGet(&gpu, on.has_index() ? on.index() : 0), "finding a GPU");
  driver.check(driver.cuDeviceTotalMem(&bytes, gpu), "reading the size of a GPU's memory");
  return bytes;
}

std::uint64_t gpu_memory_in_use(const std::string& device) {
  const c10::DeviceGuard guard{c10::Device(device)};  // with its context
  const cuda_driver& driver = cuda_driver::get();
  std::size_t free = 0;
  std::size_t all = 0;
  driver.check(driver.cuMemGetInfo(&free, &all), "reading a GPU's free memory");
  return all - free;
}

void set_policy_threads(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
}

std::string torch_version() { return TORCH_VERSION; }

}  // namespace hone
