#pragma once

#include <string>

namespace hone {

// A new folder hone-NAME-XXXXXX in the system's temporary folder. The destructor removes it with
// everything in it, and so does end_process().
class temporary_folder {
 public:
  // Throws std::runtime_error if the folder cannot be made.
  explicit temporary_folder(const std::string& name);
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Removes the temporary folders that still exist and ends the process without destructors. Other
// threads may still run. Not for signal handlers.
[[noreturn]] void end_process(int code);

}  // namespace hone
