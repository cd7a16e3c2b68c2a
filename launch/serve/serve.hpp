#pragma once

#include "launch/configuration.hpp"

namespace hone {

struct serve_options {
  std::filesystem::path directory;  // empty: the configuration's
  bool waits_for_cores = false;     // for those that devices need
};

// Judges programs for clients over HTTP until a signal ends it (doc/serving.md). Goes on with what
// the folder holds. Returns the exit code. Throws std::runtime_error if it cannot start.
int serve(const configuration& c, const serve_options& options);

}  // namespace hone
