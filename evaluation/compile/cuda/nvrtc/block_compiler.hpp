#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/nvrtc_library.hpp"
#include "evaluation/compile/cuda/nvrtc/nvrtc.capnp.h"

namespace hone {

// Compiles cuda blocks with NVRTC in this process, with precompiled headers. A precompiled header
// is valid for the process that made it and for its forks. Works in the current folder. Functions
// throw std::runtime_error if NVRTC itself fails. Confined to one thread.
class block_compiler {
 public:
  static constexpr const char* prelude_file = "hone_prelude.cuh";  // in the current folder

  // Writes the prelude into the current folder and compiles a trivial block, so that NVRTC loads
  // all that it loads late. A confined process could not load it.
  block_compiler();

  const nvrtc_library& library() const { return nvrtc_; }

  // Precompiles a job's headers, if it has any: CUDA's headers take a second, the prelude a few
  // milliseconds. Returns true if a new precompiled header was made.
  bool precompile(const schema::NvrtcJob::Reader& job);
  // Compiles a job's block. Errors of the assembler come with the block's lines if time allows.
  nvrtc_library::result compile(const schema::NvrtcJob::Reader& job) const;
  // Compiles `block` with a job's headers and options, to touch the memory that compiling needs.
  void warm_up(const schema::NvrtcJob::Reader& job, std::string_view block) const;

 private:
  std::vector<std::string> options_of(const schema::NvrtcJob::Reader& job) const;
  std::vector<std::string> all_options(const schema::NvrtcJob::Reader& job) const;
  std::optional<nvrtc_library::result> refused_with_lines(
      const std::string& source, std::vector<std::string> options,
      const std::vector<std::string>& kernels) const;

  nvrtc_library nvrtc_;
  std::map<std::string, bool> precompiled_;  // by head and options; false if it could not be made
};

}  // namespace hone
