#include "cuda/nvrtc_library.hpp"

#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace hone {

namespace fs = std::filesystem;

struct nvrtc_library::functions {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcGetErrorString) error_string;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcAddNameExpression) add_name;
  decltype(&nvrtcGetLoweredName) lowered_name;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetCUBINSize) cubin_size;
  decltype(&nvrtcGetCUBIN) cubin;
  decltype(&nvrtcGetPTXSize) ptx_size;
  decltype(&nvrtcGetPTX) ptx;
};

namespace {

constexpr const char* library_name = "libnvrtc.so.13";

std::vector<std::string> places() {
  std::vector<std::string> all;
  if (const char* named = std::getenv("HONE_CUDA"))
    return {std::string(named) + "/lib/" + library_name,
            std::string(named) + "/lib64/" + library_name};
  return {library_name, std::string(HONE_CUDA_ROOT) + "/lib/" + library_name,
          std::string("/usr/local/cuda/lib64/") + library_name};
}

template <class Function>
void bind(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  if (to == nullptr) throw std::runtime_error(std::string("NVRTC has no ") + name);
}

// Returns the folders that hold CUDA's headers, those next to the library first. The C++ headers of
// CCCL are in a separate folder.
std::vector<std::string> find_includes(const fs::path& library_folder) {
  std::vector<std::string> found;
  for (const fs::path& root :
       {library_folder.parent_path() / "include", fs::path(HONE_CUDA_ROOT) / "include",
        fs::path("/usr/local/cuda/include")}) {
    if (!fs::exists(root / "cuda_fp16.h")) continue;
    found.push_back(root);
    if (fs::exists(root / "cccl")) found.push_back(root / "cccl");
    // A complete toolkit needs no headers from another one.
    if (fs::exists(root / "crt") && fs::exists(root / "cccl")) break;
    found.clear();
  }
  return found;
}

}  // namespace

nvrtc_library::nvrtc_library() {
  void* library = nullptr;
  std::string why;
  for (const std::string& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (const char* text = dlerror(); why.empty() && text != nullptr) why = text;
  }
  if (library == nullptr)
    throw std::runtime_error(
        "NVRTC of CUDA 13 was not found (set HONE_CUDA to the toolkit's folder): " + why);
  functions f{};
  bind(library, "nvrtcVersion", f.version);
  bind(library, "nvrtcGetErrorString", f.error_string);
  bind(library, "nvrtcCreateProgram", f.create);
  bind(library, "nvrtcDestroyProgram", f.destroy);
  bind(library, "nvrtcAddNameExpression", f.add_name);
  bind(library, "nvrtcGetLoweredName", f.lowered_name);
  bind(library, "nvrtcCompileProgram", f.compile);
  bind(library, "nvrtcGetProgramLogSize", f.log_size);
  bind(library, "nvrtcGetProgramLog", f.log);
  bind(library, "nvrtcGetCUBINSize", f.cubin_size);
  bind(library, "nvrtcGetCUBIN", f.cubin);
  bind(library, "nvrtcGetPTXSize", f.ptx_size);
  bind(library, "nvrtcGetPTX", f.ptx);
  // The library stays loaded, and every object of this class finds the same functions.
  static const functions found = f;
  call_ = &found;
  if (f.version(&major_, &minor_) != NVRTC_SUCCESS)
    throw std::runtime_error("NVRTC does not report its version");
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(f.version), &where) == 0)
    throw std::runtime_error("NVRTC's folder is unknown");
  folder_ = fs::canonical(where.dli_fname).parent_path();
  includes_ = find_includes(folder_);
  if (includes_.empty())
    throw std::runtime_error("CUDA's headers are not next to NVRTC in " + folder_ +
                             " (set HONE_CUDA to the toolkit's folder)");
}

nvrtc_library::result nvrtc_library::compile(const std::string& source,
                                             const std::vector<std::string>& options,
                                             const std::vector<std::string>& kernels) const {
  const auto check = [this](nvrtcResult status, const char* what) {
    if (status != NVRTC_SUCCESS)
      throw std::runtime_error(std::string("NVRTC cannot ") + what + ": " +
                               call_->error_string(status));
  };
  nvrtcProgram program = nullptr;
  check(call_->create(&program, source.c_str(), "hone.cu", 0, nullptr, nullptr),
        "create a program");
  const auto destroy = [this](nvrtcProgram* p) { (void)call_->destroy(p); };
  const std::unique_ptr<nvrtcProgram, decltype(destroy)> owner(&program, destroy);
  for (const std::string& kernel : kernels)
    check(call_->add_name(program, kernel.c_str()), "accept a kernel's name");
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const nvrtcResult status = call_->compile(program, static_cast<int>(words.size()), words.data());
  result made;
  const auto fetch = [&](auto size_of, auto copy, std::string& into) {
    std::size_t size = 0;
    check(size_of(program, &size), "report the size of its output");
    into.resize(size);
    if (size > 0) check(copy(program, into.data()), "return its output");
  };
  fetch(call_->log_size, call_->log, made.log);
  while (!made.log.empty() && (made.log.back() == '\0' || made.log.back() == '\n'))
    made.log.pop_back();
  if (status == NVRTC_ERROR_COMPILATION || status == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID)
    return made;
  check(status, "compile");
  fetch(call_->cubin_size, call_->cubin, made.code);
  fetch(call_->ptx_size, call_->ptx, made.ptx);
  while (!made.ptx.empty() && made.ptx.back() == '\0') made.ptx.pop_back();
  for (const std::string& kernel : kernels) {
    const char* symbol = nullptr;
    check(call_->lowered_name(program, kernel.c_str(), &symbol), "return a kernel's symbol");
    made.symbols.emplace_back(symbol);
  }
  made.compiled = true;
  return made;
}

}  // namespace hone
