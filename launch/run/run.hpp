#pragma once

#include <filesystem>
#include <string>

#include "launch/configuration.hpp"

namespace hone {

struct run_options {
  std::filesystem::path directory;  // empty: the configuration's
  bool resume = false;
  bool dry_run = false;
  std::string command;  // how this run was started, for the message that says how to resume it
};

// Runs a configuration to its report. Returns the exit code: 0 complete, 3 stopped by a signal (and
// resumable), 1 failed.
int run(const configuration& c, const run_options& options);

}  // namespace hone
