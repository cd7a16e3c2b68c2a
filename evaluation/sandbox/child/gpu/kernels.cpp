#include "evaluation/sandbox/child/gpu/kernels.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "evaluation/program/kernel_limits.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

// Bytes of shared memory, static and dynamic together, that every kernel may use.
constexpr std::int64_t shared_without_opt_in = 48 << 10;

[[noreturn]] void refuse(const std::string& message) {
  throw program_error(Outcome::LAUNCH_ERROR, message);
}

}  // namespace

gpu_kernels::gpu_kernels(const cuda_driver& driver, std::string_view cubin,
                         const capnp::List<schema::Kernel>::Reader& kernels, call_streams& streams,
                         gpu_allocator& memory)
    : driver_(&driver), streams_(&streams), memory_(&memory), module_(driver) {
  if (cubin.empty()) return;
  if (const CUresult status = driver.cuModuleLoadData(&module_.is, cubin.data());
      status != CUDA_SUCCESS)
    refuse("the kernels cannot be loaded: " + driver.describe(status));
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, 0), "finding the GPU");
  shared_limit_ = driver.attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  for (const auto facts : kernels) {
    const std::string name(view(facts.getName()));
    kernel k;
    if (const CUresult status =
            driver.cuModuleGetFunction(&k.function, module_.is, facts.getSymbol().cStr());
        status != CUDA_SUCCESS)
      refuse(name + ": " + driver.describe(status));
    for (const auto p : facts.getParameters())
      k.parameters.push_back({static_cast<parameter_facts::kinds>(p.getKind()), p.getBytes()});
    check_parameters(name, k);
    int value = 0;
    if (driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k.function) !=
            CUDA_SUCCESS ||
        static_cast<std::uint64_t>(value) > max_local_bytes)
      refuse(name + ": " + std::to_string(value) +
             " bytes of local memory a thread (arrays and spilled registers), the limit is " +
             std::to_string(max_local_bytes));
    if (driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k.function) ==
        CUDA_SUCCESS)
      k.static_shared = value;
    k.dynamic_shared = std::max<std::int64_t>(0, shared_without_opt_in - k.static_shared);
    if (driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k.function) ==
        CUDA_SUCCESS)
      k.max_threads = value;
    // Not every GPU of a generation supports clusters of more than eight blocks. They are allowed
    // for kernels that state their cluster.
    if (driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, k.function) ==
            CUDA_SUCCESS &&
        value > 0) {
      driver.cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    }
    k.is_cooperative = facts.getCooperative();
    k.number = static_cast<std::uint32_t>(kernels_.size());
    kernels_.emplace(name, std::move(k));
  }
}

void gpu_kernels::check_parameters(const std::string& name, const kernel& k) const {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < k.parameters.size(); ++i) {
    if (driver_->cuFuncGetParamInfo(k.function, i, &offset, &bytes) != CUDA_SUCCESS ||
        bytes != k.parameters[i].bytes) {
      refuse(name + ": parameter " + std::to_string(i + 1) +
             " differs from what the compiler reported");
    }
  }
  if (driver_->cuFuncGetParamInfo(k.function, k.parameters.size(), &offset, &bytes) == CUDA_SUCCESS)
    refuse(name + " has more parameters than the compiler reported");
}

void gpu_kernels::describe_launches(arena_head& head) const {
  head.launch_count = 0;
  for (const auto& [name, k] : kernels_) {
    if (k.last_blocks == 0 || head.launch_count == max_kernel_launches) continue;
    int fit = 0;
    driver_->cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &fit, k.function, static_cast<int>(k.last_threads), k.last_shared);
    head.launches[head.launch_count++] = {k.number, k.last_threads, k.last_blocks, k.last_shared,
                                          static_cast<std::uint32_t>(fit)};
  }
}

void gpu_kernels::use_stream(std::int64_t k) {
  memory_->keep_freed();
  streams_->use(k);
}

void gpu_kernels::launch(const std::string& name, const std::vector<std::int64_t>& grid,
                         const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
                         const std::vector<c10::IValue>& arguments) {
  const auto found = kernels_.find(name);
  if (found == kernels_.end())
    refuse((module_.is == nullptr ? "there is no cuda block, so no __global__ function '"
                                  : "the cuda block has no __global__ function '") +
           name + "'");
  kernel& k = found->second;
  const launch_size blocks = checked_grid(name, grid);
  const launch_size threads = checked_block(name, block);
  check_shared_bytes(name, shared_bytes);
  marshaled_arguments marshaled(name, arguments, k.parameters, true);
  if (blocks.count() == 0) return;
  if (threads.count() > static_cast<std::uint64_t>(k.max_threads)) {
    refuse(name + ": " + std::to_string(threads.count()) +
           " threads a block, its registers allow " + std::to_string(k.max_threads));
  }
  if (shared_bytes + k.static_shared > shared_limit_) {
    refuse(name + ": " + std::to_string(shared_bytes) + " bytes of dynamic and " +
           std::to_string(k.static_shared) + " of static shared memory, the device has " +
           std::to_string(shared_limit_));
  }
  if (shared_bytes > k.dynamic_shared) {
    k.dynamic_shared = shared_limit_ - k.static_shared;
    driver_->check(
        driver_->cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(k.dynamic_shared)),
        "asking for shared memory");
  }
  k.last_blocks = blocks.count();
  k.last_threads = static_cast<std::uint32_t>(threads.count());
  k.last_shared = static_cast<std::uint32_t>(shared_bytes);
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = blocks.x;
  config.gridDimY = blocks.y;
  config.gridDimZ = blocks.z;
  config.blockDimX = threads.x;
  config.blockDimY = threads.y;
  config.blockDimZ = threads.z;
  config.sharedMemBytes = static_cast<unsigned>(shared_bytes);
  config.hStream = c10::cuda::getCurrentCUDAStream(0).stream();
  config.attrs = &cooperative;
  config.numAttrs = k.is_cooperative ? 1 : 0;
  if (const CUresult status =
          driver_->cuLaunchKernelEx(&config, k.function, marshaled.addresses(), nullptr);
      status != CUDA_SUCCESS)
    refuse(name + ": " + driver_->describe(status));
}

}  // namespace hone
