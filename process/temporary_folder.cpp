#include "process/temporary_folder.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <stdexcept>

namespace hone {
namespace {

struct folders {
  std::mutex lock;
  std::set<std::string> paths;
};

// Never destroyed: threads may own folders until the process ends.
folders& existing() {
  static folders* const all = new folders;
  return *all;
}

void remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

temporary_folder::temporary_folder(const std::string& name) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / ("hone-" + name + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error("cannot make a temporary folder in " + pattern);
  path_ = pattern;
  const std::lock_guard hold(existing().lock);
  existing().paths.insert(path_);
}

temporary_folder::~temporary_folder() {
  remove(path_);
  const std::lock_guard hold(existing().lock);
  existing().paths.erase(path_);
}

void end_process(int code) {
  {
    const std::lock_guard hold(existing().lock);
    for (const std::string& path : existing().paths) remove(path);
  }
  _exit(code);
}

}  // namespace hone
