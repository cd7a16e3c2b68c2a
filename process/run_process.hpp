#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "process/child_process.hpp"

namespace hone {

struct process_result {
  int status = 0;          // as waitpid() returns it
  bool timed_out = false;  // The process was killed at the deadline.
  bool too_much = false;   // The process was killed because it printed more than it may.
  std::string out;
  std::string err;
  bool succeeded() const;
};

// Runs a program to its end with `input` as its standard input. Descriptors 0 to 2 are set here.
process_result run_process(child_options options, std::string_view input,
                           std::chrono::milliseconds time_limit,
                           std::size_t max_output_bytes = 64U << 20U);

}  // namespace hone
