#include "evaluation/sandbox/client/module_interpreter.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "embedded/module_runner.hpp"
#include "process/find_program.hpp"
#include "process/read_fence.hpp"

namespace hone {
namespace {

// The folders in which the loader looks for libraries first.
std::vector<std::filesystem::path> folders_of_libraries() {
  std::vector<std::filesystem::path> folders;
  const char* named = std::getenv("LD_LIBRARY_PATH");
  std::istringstream list(named != nullptr ? named : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

// Files of NVIDIA's driver, in addition to those in /usr. Other processes in /proc are not among
// them.
constexpr std::array files_of_driver = {"/dev", "/sys", "/proc/driver", "/proc/devices",
                                        "/proc/modules"};

}  // namespace

module_interpreter::module_interpreter(device on) {
  const std::filesystem::path python = find_python();
  const std::string library =
      on == device::cpu ? companion_program("libhone-module.so", "HONE_MODULE_LIBRARY")
                        : companion_program("libhone-gpu-module.so", "HONE_GPU_MODULE_LIBRARY");
  std::vector<std::filesystem::path> readable = files_of_python(python);
  readable.push_back(std::filesystem::path(library).parent_path());
  for (const auto& folder : folders_of_libraries()) readable.push_back(folder);
  if (on == device::gpu)
    readable.insert(readable.end(), files_of_driver.begin(), files_of_driver.end());
  fence_ = make_read_fence(readable);
  if (!fence_)
    throw std::runtime_error(
        "this machine cannot judge Python modules: its kernel has no Landlock (Linux 5.13), which "
        "limits the files that they read");
  options_.arguments = {python.string(),
                        "-I",
                        "-B",
                        "-c",
                        std::string(embedded::module_runner),
                        library,
                        on == device::cpu ? "cpu" : "cuda:0"};
  options_.folder = "/";  // modules do not learn the names of the user's folders
  options_.read_fence = fence_.get();
  options_.reads_own_facts = on == device::gpu;  // CUDA reads the maps of its process
}

}  // namespace hone
