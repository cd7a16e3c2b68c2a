#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "launch/configuration.hpp"

namespace hone {

struct run_options {
  std::filesystem::path directory;  // the run's folder; empty for the configuration's
  bool resume = false;              // continue the run in that folder
  // Contrastive steps that the run goes on by, beyond those that it has planned or, if it has
  // finished, made. Not 0: resumes the run.
  std::int64_t more_contrastive_steps = 0;
  bool dry_run = false;  // check everything and print the configuration, start nothing
  // Wait until other processes release the cores that CPU devices need, and do not fail.
  bool waits_for_cores = false;
};

// Runs a configuration to its report, with its progress on standard output, and ends the process
// with an exit code: 0 complete (also of a finished run, which is left as it is), 3 stopped by a
// signal (and resumable), 1 failed. Returns only from a dry run, with 0, or with 2 if the run would
// not start. Throws std::runtime_error, among them format_error, policy_error and pool_error, if
// the run cannot start.
int run(const configuration& c, const run_options& options);

}  // namespace hone
