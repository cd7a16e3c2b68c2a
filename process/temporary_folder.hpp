#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace hone {

// A new folder hone-NAME-XXXXXX in the system's temporary folder. The destructor removes it with
// everything in it.
class temporary_folder {
 public:
  // Throws std::runtime_error if the folder cannot be made.
  explicit temporary_folder(const std::string& name) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / ("hone-" + name + "-XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw std::runtime_error("cannot make a temporary folder in " + pattern);
    path_ = pattern;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hone
