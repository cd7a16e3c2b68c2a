// ---- Launches kernels with the arguments of a host program.

namespace hone_exported {

inline void check(cudaError_t status, const std::string& what) {
  TORCH_CHECK(status == cudaSuccess, what, ": ", cudaGetErrorString(status));
}

struct launch_size {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
};

using launcher = std::function<void(const launch_size& size, at::ArrayRef<c10::IValue> arguments)>;

// Converts an argument of launch() to a kernel's parameter.
template <class Parameter>
Parameter converted(const c10::IValue& given) {
  if constexpr (std::is_pointer_v<Parameter>) {
    const at::Tensor& tensor = given.toTensor();
    if (!tensor.defined()) return nullptr;
    TORCH_CHECK(tensor.is_cuda(), "a kernel's argument is a tensor in the host's memory");
    return reinterpret_cast<Parameter>(tensor.data_ptr());
  } else if constexpr (std::is_same_v<Parameter, bool>) {
    return given.toBool();
  } else if constexpr (std::is_integral_v<Parameter>) {
    return static_cast<Parameter>(given.toInt());
  } else {
    static_assert(std::is_floating_point_v<Parameter>, "launch() has no arguments of this type");
    return static_cast<Parameter>(given.toDouble());
  }
}

// Allows a kernel this much dynamic shared memory on the current GPU.
inline void allow_shared(const void* kernel, std::size_t bytes, const std::string& name) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        name);
}

// Allows clusters of more than eight blocks to a kernel that states its cluster. Not every GPU has
// them.
inline void allow_large_clusters(const void* kernel) {
  cudaFuncAttributes facts{};
  if (cudaFuncGetAttributes(&facts, kernel) == cudaSuccess && facts.requiredClusterWidth > 0)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaGetLastError();
}

// Returns true if all blocks of a launch can be resident at once, as barriers of the grid need.
inline bool fits_at_once(const void* kernel, const launch_size& size) {
  int device = 0;
  int processors = 0;
  int blocks = 0;
  check(cudaGetDevice(&device), "the GPU");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "the GPU");
  const auto threads = static_cast<int>(size.block.x * size.block.y * size.block.z);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, size.shared_bytes),
        "the GPU");
  return std::uint64_t{size.grid.x} * size.grid.y * size.grid.z <=
         static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(processors);
}

// Returns a launcher of a kernel. `may_synchronize_grid`: launches whose blocks fit onto the GPU at
// once are cooperative.
template <class... Parameters>
launcher launcher_of(const char* name, void (*kernel)(Parameters...), bool may_synchronize_grid) {
  const auto* entry = reinterpret_cast<const void*>(kernel);
  constexpr std::size_t unasked = std::size_t{48}
                                  << 10U;  // bytes of shared memory, the static included
  return [=, allowed = unasked, last_device = -1](const launch_size& size,
                                                  at::ArrayRef<c10::IValue> given) mutable {
    TORCH_CHECK(given.size() == sizeof...(Parameters), name, " takes ", sizeof...(Parameters),
                " arguments, not ", given.size());
    if (size.grid.x == 0 || size.grid.y == 0 || size.grid.z == 0) return;
    int device = 0;
    check(cudaGetDevice(&device), "the GPU");
    if (std::exchange(last_device, device) != device) {
      allow_large_clusters(entry);
      cudaFuncAttributes facts{};
      check(cudaFuncGetAttributes(&facts, entry), name);
      allowed = unasked - std::min(unasked, facts.sharedSizeBytes);
    }
    if (size.shared_bytes > allowed) allow_shared(entry, allowed = size.shared_bytes, name);
    [[maybe_unused]] std::size_t next = 0;
    // The elements of a braced list are evaluated in order.
    std::tuple<std::decay_t<Parameters>...> values{
        converted<std::decay_t<Parameters>>(given[next++])...};
    std::array<void*, sizeof...(Parameters) + 1> addresses{};
    std::apply(
        [&](auto&... value) {
          addresses = {static_cast<void*>(&value)..., nullptr};
        },
        values);
    cudaLaunchAttribute cooperative{};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = size.grid;
    config.blockDim = size.block;
    config.dynamicSmemBytes = size.shared_bytes;
    config.stream = at::cuda::getCurrentCUDAStream();
    config.attrs = &cooperative;
    config.numAttrs = may_synchronize_grid && fits_at_once(entry, size) ? 1 : 0;
    check(cudaLaunchKernelExC(&config, entry, addresses.data()), name);
  };
}

}  // namespace hone_exported
