#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "evaluation/compile/compile_result.hpp"
#include "evaluation/compile/cpu_compiler.hpp"
#include "evaluation/compile/cuda_compiler.hpp"
#include "evaluation/compile/recently_used.hpp"
#include "evaluation/devices/values.hpp"
#include "evaluation/sandbox/zygote.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "tasks/settings.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Either an artifact for a device type, or what is wrong with the variant.
using artifact_result = std::variant<record<schema::Artifact>, program_failure>;

// Turns variants into artifacts for any type of device, without having one: host programs are
// checked in a sandbox process, cuda blocks compiled by the device type's compiler. Artifacts are
// kept by variant and device type, blocks by everything that they are made from: text, what is
// launched of it, options, target and toolchain. Not for more than one thread; blocks for as long
// as compilers take.
class variant_compiler {
 public:
  struct limits {
    std::chrono::milliseconds host_limit{10000};   // parsing and checking a host program
    std::chrono::milliseconds block_limit{30000};  // compiling a cuda block
    std::size_t kept_artifacts = 256;
    std::size_t kept_blocks = 256;
  };
  explicit variant_compiler(const limits& l);
  variant_compiler();

  // Throws std::runtime_error when this machine cannot compile at all (no g++, no sandbox).
  artifact_result compile(const schema::CompileJob::Reader& job, const task& t,
                          const schema::DeviceType::Reader& device_type);
  std::uint64_t blocks_compiled() const { return blocks_compiled_; }  // rather than found

 private:
  std::variant<std::set<std::string>, program_failure> check_host_program(const std::string& python,
                                                                          const task& t);
  std::string toolchain_of(const schema::DeviceType::Reader& device_type);
  compile_result compile_anew(
      std::string_view cuda, const std::set<std::string>& launches, const settings& asked,
      const schema::DeviceType::Reader& device_type);  // behind toolchain_of()
  compile_result compile_block(std::string_view cuda, const std::set<std::string>& launches,
                               const settings& asked,
                               const schema::DeviceType::Reader& device_type);

  limits limits_;
  std::map<std::string, cpu_compiler> cpu_compilers_;  // by target
  std::unique_ptr<cuda_compiler> cuda_compiler_;
  std::shared_ptr<sandbox_zygote> checker_;
  recently_used<artifact_result> artifacts_;
  recently_used<compile_result> blocks_;
  std::uint64_t blocks_compiled_ = 0;
};

}  // namespace hone
