#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compile_result.hpp"
#include "evaluation/sandbox/child_process.hpp"
#include "evaluation/sandbox/temporary_folder.hpp"
#include "tasks/settings.hpp"

namespace hone {

// Compiles cuda blocks to cubins for an exact architecture, with NVRTC and without a GPU. The block
// is hostile text: each is compiled by a process of its own, forked from one that has the library
// and CUDA's headers ready (nvrtc/main.cpp), limited in time, memory and the files that it can
// read. Not for more than one thread.
class cuda_compiler {
 public:
  // Throws std::runtime_error where NVRTC or CUDA's headers are not to be found.
  cuda_compiler();

  // `architecture`: "sm_90a". `launched`: the kernels that the host program names, possibly with
  // template arguments.
  compile_result compile(std::string_view block, const std::set<std::string>& launched,
                         const settings& asked, const std::string& architecture,
                         std::chrono::milliseconds time_limit);

  // "nvrtc13.0"
  const std::string& name() const { return name_; }

 private:
  void start();
  bool is_cuda_header(const std::string& name) const;

  temporary_folder folder_{"nvrtc"};
  child_process process_;
  unique_fd socket_;
  std::string name_;
  std::vector<std::string> include_folders_;
};

}  // namespace hone
