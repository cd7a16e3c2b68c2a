#include "evaluation/sandbox/child/cpu/kernels.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/child/cpu/block_runtime.hpp"

namespace hone {
namespace {

constexpr std::size_t shared_guard_bytes = 1024;

// Callback of dl_iterate_phdr. Finds the size of the thread-local segment, which holds a module's
// __shared__ variables, of the module loaded at the address wanted->first, and stores the size in
// wanted->second.
int find_segment(dl_phdr_info* info, std::size_t /*size*/, void* wanted) {
  auto& [address, bytes] = *static_cast<std::pair<std::uint64_t, std::uint64_t>*>(wanted);
  if (info->dlpi_addr != address) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_TLS) bytes = info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

}  // namespace

struct cpu_kernels::state {
  void* handle = nullptr;
  const block_abi::module* module = nullptr;
  char* static_shared = nullptr;
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t dynamic_in_use = 0;
  unsigned char poison = poison_byte;
};

cpu_kernels::cpu_kernels(const std::string& path) : state_(std::make_unique<state>()) {
  state_->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state_->handle == nullptr)
    throw std::runtime_error(std::string("the kernels cannot be loaded: ") + dlerror());
  state_->module = static_cast<const block_abi::module*>(dlsym(state_->handle, "hone_module"));
  if (state_->module == nullptr || state_->module->version != 1)
    throw std::runtime_error("the kernels were compiled for another version of the sandbox");
  state_->module->bind(&block_runtime::interface());
  state_->module->static_shared();  // the first touch allocates this thread's copy
  link_map* map = nullptr;
  if (dlinfo(state_->handle, RTLD_DI_LINKMAP, &map) == 0) {
    std::pair<std::uint64_t, std::uint64_t> segment = {map->l_addr, 0};
    dl_iterate_phdr(find_segment, &segment);
    void* block = nullptr;
    if (dlinfo(state_->handle, RTLD_DI_TLS_DATA, &block) == 0 && block != nullptr) {
      state_->static_shared = static_cast<char*>(block);
      state_->static_shared_bytes = segment.second;
    }
  }
}

// The process ends together with its kernels. Unloading them would only run their code.
cpu_kernels::~cpu_kernels() = default;

void cpu_kernels::poison_shared(unsigned char poison) {
  state_->poison = poison;
  if (state_->static_shared != nullptr)
    std::memset(state_->static_shared, poison, state_->static_shared_bytes);
  std::memset(state_->module->dynamic_shared, poison, state_->module->dynamic_shared_bytes);
}

bool cpu_kernels::shared_overrun() const {
  if (state_->dynamic_in_use == 0) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(state_->module->dynamic_shared);
  const std::uint64_t end = std::min<std::uint64_t>(state_->module->dynamic_shared_bytes,
                                                    state_->dynamic_in_use + shared_guard_bytes);
  for (std::uint64_t i = state_->dynamic_in_use; i < end; ++i) {
    if (bytes[i] != state_->poison) return true;
  }
  return false;
}

record<schema::LoadedKernels> cpu_kernels::facts() const {
  record_builder<schema::LoadedKernels> facts;
  auto kernels = facts->initKernels(state_->module->kernel_count);
  for (unsigned i = 0; i < kernels.size(); ++i) {
    const block_abi::kernel& kernel = state_->module->kernels[i];
    kernels[i].setName(kernel.name);
    auto parameters = kernels[i].initParameters(kernel.parameter_count);
    for (unsigned p = 0; p < parameters.size(); ++p) {
      parameters[p].setKind(
          static_cast<schema::Kernel::Parameter::Kind>(kernel.parameters[p].kind));
      parameters[p].setBytes(kernel.parameters[p].bytes);
    }
  }
  return facts.finish();
}

void cpu_kernels::run(const queued_launch& launch, std::uint64_t* arguments) {
  std::vector<void*> addresses;
  for (std::uint32_t i = 0; i < launch.arguments; ++i) addresses.push_back(arguments + i);
  state_->dynamic_in_use =
      std::max<std::uint64_t>(state_->dynamic_in_use, launch.dynamic_shared_bytes);
  const auto size = [](const std::array<std::uint32_t, 3>& n) {
    return block_abi::size{n[0], n[1], n[2]};
  };
  block_runtime::run(*state_->module, state_->module->kernels[launch.kernel], size(launch.grid),
                     size(launch.block), addresses.data());
}

}  // namespace hone
