#include "evaluation/sandbox/child/kernels.hpp"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "evaluation/sandbox/arena_layout.hpp"
#include "evaluation/sandbox/child/block_runtime.hpp"

namespace hone {
namespace {

// CUDA's limits, the same on every device.
constexpr std::array<std::int64_t, 3> max_grid = {2147483647, 65535, 65535};
constexpr std::array<std::int64_t, 3> max_block = {1024, 1024, 64};
constexpr std::int64_t max_block_threads = 1024;
constexpr std::int64_t max_shared_bytes = 227 * 1024;
constexpr std::size_t shared_guard_bytes = 1024;

[[noreturn]] void refuse(const std::string& message) { throw host_program_error(Outcome::LAUNCH_ERROR, message); }

block_abi::size checked_size(const std::vector<std::int64_t>& values, const std::array<std::int64_t, 3>& limits, std::int64_t least, const std::string& what) {
  if (values.empty() || values.size() > 3) refuse(what + " has " + std::to_string(values.size()) + " dimensions, expected one to three");
  std::array<unsigned, 3> size = {1, 1, 1};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < least || values[i] > limits[i]) {
      refuse(what + " is " + std::to_string(values[i]) + " in dimension " + std::to_string(i) + ", expected " + std::to_string(least) + " to " + std::to_string(limits[i]));
    }
    size[i] = static_cast<unsigned>(values[i]);
  }
  return {size[0], size[1], size[2]};
}

const char* kind_name(unsigned kind) {
  constexpr std::array<const char*, 5> names = {"a pointer", "an integer", "a floating-point number", "a bool", "a struct"};
  return kind < names.size() ? names[kind] : "something else";
}

// One argument in the form that the kernel's parameter has.
class marshalled_argument {
 public:
  marshalled_argument(const c10::IValue& value, const block_abi::parameter& parameter, const std::string& place) {
    const auto mismatch = [&](const char* given) {
      refuse(place + " is " + given + ", the kernel's parameter is " + kind_name(parameter.kind) + " of " + std::to_string(parameter.bytes) + " bytes");
    };
    if (value.isTensor()) {
      if (parameter.kind != 0 || parameter.bytes != sizeof(void*)) mismatch("a Tensor");
      void* pointer = value.toTensor().defined() ? value.toTensor().data_ptr() : nullptr;
      std::memcpy(bytes_.data(), &pointer, sizeof pointer);
    } else if (value.isBool()) {
      if (parameter.kind != 3 || parameter.bytes != 1) mismatch("a bool");
      bytes_[0] = value.toBool() ? 1 : 0;
    } else if (value.isInt()) {
      if (parameter.kind != 1 || (parameter.bytes != 4 && parameter.bytes != 8)) mismatch("an int");
      const std::int64_t number = value.toInt();
      if (parameter.bytes == 4 && (number < std::numeric_limits<std::int32_t>::min() || number > std::numeric_limits<std::uint32_t>::max())) {
        refuse(place + " is " + std::to_string(number) + ", which does not fit into 4 bytes");
      }
      std::memcpy(bytes_.data(), &number, parameter.bytes);  // little endian
    } else if (value.isDouble()) {
      if (parameter.kind != 2 || (parameter.bytes != 4 && parameter.bytes != 8)) mismatch("a float");
      const double number = value.toDouble();
      const auto narrow = static_cast<float>(number);
      if (parameter.bytes == 8) {
        std::memcpy(bytes_.data(), &number, sizeof number);
      } else {
        std::memcpy(bytes_.data(), &narrow, sizeof narrow);
      }
    } else {
      mismatch("neither a Tensor nor a number");
    }
  }
  void* address() { return bytes_.data(); }

 private:
  alignas(8) std::array<char, 8> bytes_{};
};

// Finds the size of the thread-local segment, which is where a module's __shared__ variables live, of the module loaded at
// the address wanted->first.
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
};

cpu_kernels::cpu_kernels(const std::string& path) : state_(std::make_unique<state>()) {
  state_->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state_->handle == nullptr) throw std::runtime_error(std::string("the kernels cannot be loaded: ") + dlerror());
  state_->module = static_cast<const block_abi::module*>(dlsym(state_->handle, "hone_module"));
  if (state_->module == nullptr || state_->module->version != 1) throw std::runtime_error("the kernels were compiled for another version of the sandbox");
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

cpu_kernels::~cpu_kernels() = default;  // the process ends with its kernels: unloading would only run their code

void cpu_kernels::poison_shared() {
  if (state_->static_shared != nullptr) std::memset(state_->static_shared, poison_byte, state_->static_shared_bytes);
  std::memset(state_->module->dynamic_shared, poison_byte, state_->module->dynamic_shared_bytes);
}

bool cpu_kernels::shared_overrun() const {
  if (state_->dynamic_in_use == 0) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(state_->module->dynamic_shared);
  const std::uint64_t end = std::min<std::uint64_t>(state_->module->dynamic_shared_bytes, state_->dynamic_in_use + shared_guard_bytes);
  for (std::uint64_t i = state_->dynamic_in_use; i < end; ++i) {
    if (bytes[i] != poison_byte) return true;
  }
  return false;
}

void cpu_kernels::launch(const std::string& kernel, const std::vector<std::int64_t>& grid, const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
                         const std::vector<c10::IValue>& arguments) {
  const block_abi::kernel* found = nullptr;
  for (unsigned i = 0; i < state_->module->kernel_count; ++i) {
    if (kernel == state_->module->kernels[i].name) found = &state_->module->kernels[i];
  }
  if (found == nullptr) refuse("the cuda block has no __global__ function '" + kernel + "'");
  const block_abi::size blocks = checked_size(grid, max_grid, 0, kernel + ": the grid");
  const block_abi::size threads = checked_size(block, max_block, 1, kernel + ": the block");
  if (static_cast<std::int64_t>(threads.x) * threads.y * threads.z > max_block_threads) refuse(kernel + ": the block has more than 1024 threads");
  if (shared_bytes < 0 || shared_bytes > max_shared_bytes) refuse(kernel + ": " + std::to_string(shared_bytes) + " bytes of dynamic shared memory, expected 0 to " + std::to_string(max_shared_bytes));
  if (arguments.size() != found->parameter_count) {
    refuse(kernel + ": " + std::to_string(arguments.size()) + " arguments, the kernel has " + std::to_string(found->parameter_count) + " parameters");
  }
  std::vector<marshalled_argument> marshalled;
  marshalled.reserve(arguments.size());
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    marshalled.emplace_back(arguments[i], found->parameters[i], kernel + ": argument " + std::to_string(i + 1));
    addresses.push_back(marshalled.back().address());
  }
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  state_->dynamic_in_use = std::max<std::uint64_t>(state_->dynamic_in_use, static_cast<std::uint64_t>(shared_bytes));
  block_runtime::run(*state_->module, *found, blocks, threads, addresses.data());
}

}  // namespace hone
