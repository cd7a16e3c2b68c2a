#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cuda_driver.hpp"
#include "evaluation/sandbox/child/common/launch_checks.hpp"
#include "evaluation/sandbox/child/gpu/allocator.hpp"
#include "evaluation/sandbox/child/gpu/streams.hpp"
#include "messages/schema/pipeline.capnp.h"

namespace hone {

// The kernels of a cubin. When they are loaded, the compiler's table of parameters is compared with
// the driver's. The sizes and arguments of a launch are checked before anything runs. Confined to
// one thread at a time.
class gpu_kernels final : public kernel_launcher {
 public:
  // Loads the kernels. An empty cubin means that there is no cuda block, so every launch fails. All
  // references must outlive this object. Throws program_error (launch_error) if code and table
  // disagree.
  gpu_kernels(const cuda_driver& driver, std::string_view cubin,
              const capnp::List<schema::Kernel>::Reader& kernels, call_streams& streams,
              gpu_allocator& memory);
  gpu_kernels(const gpu_kernels&) = delete;
  gpu_kernels& operator=(const gpu_kernels&) = delete;

  void launch(const std::string& kernel, const std::vector<std::int64_t>& grid,
              const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
              const std::vector<c10::IValue>& arguments) override;
  // Enters the last launch of each kernel into the arena's head.
  void describe_launches(arena_head& head) const;
  void use_stream(std::int64_t k) override;
  void join_streams() override { streams_->join(); }

 private:
  struct kernel {
    CUfunction function = nullptr;
    std::vector<parameter_facts> parameters;
    std::int64_t static_shared = 0;
    std::int64_t dynamic_shared = 0;  // the most that a launch may ask for so far
    int max_threads = 1024;
    bool is_cooperative = false;
    std::uint32_t number = 0;
    std::uint64_t last_blocks = 0;  // 0 if it was never launched
    std::uint32_t last_threads = 0;
    std::uint32_t last_shared = 0;
  };
  void check_parameters(const std::string& name, const kernel& k) const;

  const cuda_driver* driver_;
  call_streams* streams_;
  gpu_allocator* memory_;
  struct loaded_module {
    explicit loaded_module(const cuda_driver& d) : driver(&d) {}
    loaded_module(const loaded_module&) = delete;
    loaded_module& operator=(const loaded_module&) = delete;
    ~loaded_module() {
      if (is != nullptr) driver->cuModuleUnload(is);
    }
    const cuda_driver* driver;
    CUmodule is = nullptr;
  } module_;
  std::int64_t shared_limit_ = 0;  // static and dynamic together, with opt-in
  std::map<std::string, kernel, std::less<>> kernels_;
};

}  // namespace hone
