#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"
#include "process/child_process.hpp"
#include "process/temporary_folder.hpp"
#include "process/unique_fd.hpp"
#include "tasks/settings.hpp"

namespace hone {

// Compiles cuda blocks to cubins for an exact architecture, with NVRTC and without a GPU. A block
// is hostile text. Each block is compiled by a separate process, limited in time, memory and the
// files that it can read. That process is forked from one that has the library and CUDA's headers
// ready (nvrtc/main.cpp). Confined to one thread.
class cuda_compiler {
 public:
  // Throws std::runtime_error if NVRTC or CUDA's headers are not found.
  cuda_compiler();

  // Compiles a block. `architecture`: "sm_90a". `launched`: the kernels that the host program
  // names, possibly with template arguments, in the order of its text.
  program_result<compiled_block> compile(std::string_view block,
                                         const std::vector<std::string>& launched,
                                         const settings& asked, const std::string& architecture,
                                         std::chrono::milliseconds time_limit);

  // Returns the compiler and its version: "nvrtc13.0".
  const std::string& name() const { return name_; }

 private:
  void start();
  bool is_cuda_header(const std::string& name) const;
  static std::vector<std::string> find_kernels(const std::string& source,
                                               const std::vector<std::string>& launched);
  // Sends a job to hone-nvrtc and returns the answer. Throws block_refused if none arrives in time.
  std::vector<char> request(const std::vector<char>& job,
                            std::chrono::steady_clock::time_point deadline);
  // Throws block_refused.
  compiled_block build(std::string_view block, const std::vector<std::string>& launched,
                       const settings& asked, const std::string& architecture,
                       std::chrono::milliseconds time_limit);

  temporary_folder folder_{"nvrtc"};
  child_process process_;
  unique_fd socket_;
  std::string name_;
  std::vector<std::string> include_folders_;
};

}  // namespace hone
