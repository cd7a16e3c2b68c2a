#pragma once

#include "process/child_process.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// The command that starts the Python process from which sessions of Python modules are forked:
// sandbox/child/module/runner.py with libhone-module.so, behind a fence that limits the files which
// it reads to those of Python.
class module_interpreter {
 public:
  // Throws std::runtime_error if this machine has no Python with torch, or no Landlock.
  module_interpreter();
  // Valid as long as this object.
  const child_options& options() const { return options_; }

 private:
  unique_fd fence_;
  child_options options_;
};

}  // namespace hone
