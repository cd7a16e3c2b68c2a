#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "evaluation/program/failure.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// Compiles variants into artifacts for any device type; no such device need be present. A sandbox
// process checks host programs, and the device type's compiler compiles cuda blocks. Artifacts are
// cached by variant and device type. Compiled blocks are cached by all their inputs: text, launched
// kernels, options, target and toolchain. Confined to one thread, which it blocks while compilers
// run.
class variant_compiler {
 public:
  struct limits {
    std::chrono::milliseconds host_program{10000};  // for parsing and checking a host program
    std::chrono::milliseconds block{30000};         // for compiling a cuda block
    std::size_t kept_artifacts = 256;               // capacity of the cache of artifacts
    std::size_t kept_blocks = 256;                  // capacity of the cache of compiled blocks
  };
  explicit variant_compiler(const limits& l);
  variant_compiler();
  ~variant_compiler();
  variant_compiler(variant_compiler&&) noexcept;
  variant_compiler& operator=(variant_compiler&&) noexcept;

  // Returns the artifact, or the variant's failure. Throws std::runtime_error if this machine
  // cannot compile at all (no g++, no sandbox).
  program_result<record<schema::Artifact>> compile(const schema::CompileJob::Reader& job,
                                                   const task& t,
                                                   const schema::DeviceType::Reader& device_type);
  // Returns the number of blocks that were compiled, that is, not found in the cache.
  std::uint64_t blocks_compiled() const;

  // Throws std::runtime_error if this machine cannot compile for CUDA devices.
  static void require_cuda_toolchain();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
