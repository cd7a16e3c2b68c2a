#include "process/find_program.hpp"

#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace hone {
namespace {

int note_libtorch(dl_phdr_info* library, std::size_t /*size*/, void* into) {
  const std::filesystem::path path = library->dlpi_name;
  if (path.filename() != "libtorch_cpu.so") return 0;
  *static_cast<std::filesystem::path*>(into) = path;
  return 1;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    throw std::runtime_error(name + " is not a program on this machine");
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored) &&
        access(candidate.c_str(), X_OK) == 0)
      return candidate.string();
  }
  throw std::runtime_error("the program " + name + " is not in PATH");
}

std::filesystem::path find_python() {
  if (const char* named = std::getenv("HONE_PYTHON")) {
    if (access(named, X_OK) == 0) return std::filesystem::absolute(named);
    throw std::runtime_error(std::string("HONE_PYTHON=") + named + " is not an executable file");
  }
  std::filesystem::path library;
  dl_iterate_phdr(note_libtorch, &library);
  for (auto at = library.parent_path(); at.has_relative_path(); at = at.parent_path()) {
    if (access((at / "bin" / "python3").c_str(), X_OK) == 0) return at / "bin" / "python3";
  }
  throw std::runtime_error("found no Python interpreter for " +
                           (library.empty() ? "LibTorch" : library.string()) +
                           "; set HONE_PYTHON to one that has torch");
}

}  // namespace hone
