#pragma once

#include <string>
#include <vector>

namespace hone {

// NVRTC, loaded at run time, so that everything else also works on machines without it. Confined to
// one thread.
class nvrtc_library {
 public:
  struct result {
    bool compiled = false;
    std::string code;  // cubin
    std::string ptx;
    std::vector<std::string> symbols;  // of the kernels, in their order
    std::string log;
  };

  // Looks for the library in the folder that HONE_CUDA names or, if it is not set, next to LibTorch
  // (the loader's path), where CMake found it, and in /usr/local/cuda. Throws std::runtime_error if
  // there is none.
  nvrtc_library();

  int major() const { return major_; }
  int minor() const { return minor_; }
  // Returns the folder of the library, and the folders of CUDA's headers.
  const std::string& folder() const { return folder_; }
  const std::vector<std::string>& include_folders() const { return includes_; }

  // Compiles for the real architecture that `options` name. `kernels` are C++ name expressions,
  // which are instantiated. Throws std::runtime_error if NVRTC itself fails; a source that does not
  // compile is a result.
  result compile(const std::string& source, const std::vector<std::string>& options,
                 const std::vector<std::string>& kernels) const;

 private:
  struct functions;
  const functions* call_;
  int major_ = 0;
  int minor_ = 0;
  std::string folder_;
  std::vector<std::string> includes_;
};

}  // namespace hone
