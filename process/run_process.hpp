#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "process/child_process.hpp"

namespace hone {

// The end of a process and the text that it printed.
struct process_result {
  int status = 0;          // as waitpid() returns it
  bool timed_out = false;  // the process was killed at the deadline
  bool too_much = false;   // the process was killed because it printed too much
  std::string out;         // standard output
  std::string err;         // standard error
  // Returns true if the process was not killed and its exit code is 0.
  bool succeeded() const;
};

// Runs a program to its end with `input` as its standard input. The process is killed after
// `time_limit`, or once it has printed more than `max_output_bytes` to standard output and standard
// error together. Adds descriptors 0 to 2 to `options`. Blocks. Throws std::system_error if the
// program cannot be started.
process_result run_process(child_options options, std::string_view input,
                           std::chrono::milliseconds time_limit,
                           std::size_t max_output_bytes = 64U << 20U);

}  // namespace hone
