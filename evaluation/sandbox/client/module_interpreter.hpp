#pragma once

#include "process/child_process.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// The command that starts a Python process for Python modules, sandbox/child/module/runner.py,
// behind a fence that limits the files which it reads to those of Python and of its device.
class module_interpreter {
 public:
  // cpu: the process from which sessions are forked, with libhone-module.so. gpu: the process of
  // one session, with libhone-gpu-module.so.
  enum class device { cpu, gpu };
  // Throws std::runtime_error if this machine has no Python with torch, or no Landlock.
  explicit module_interpreter(device on);
  // Valid as long as this object.
  const child_options& options() const { return options_; }

 private:
  unique_fd fence_;
  child_options options_;
};

}  // namespace hone
