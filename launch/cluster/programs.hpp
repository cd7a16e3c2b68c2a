#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "process/run_process.hpp"

namespace hone {

// Runs a program to its end, with launch_environment(). `arguments[0]` is looked up by
// find_program(). Throws std::runtime_error if there is no such program, if it takes longer than
// `limit`, or if its exit code is not 0; the message has what the program wrote to standard error.
// Returns its standard output.
std::string run_program(std::vector<std::string> arguments, const std::string& input,
                        std::chrono::milliseconds limit);

// Returns the variables of this process's environment, "KEY=value", without those that Slurm sets
// for the job in which this process may run; SLURM_CONF stays.
std::vector<std::string> launch_environment();

// Returns a word as a POSIX shell reads it back, whatever characters it has.
std::string shell_quoted(const std::string& word);
// Returns a command line that a POSIX shell splits into these words.
std::string shell_line(const std::vector<std::string>& words);

// Returns the last lines of a file, or an empty string if it is empty or cannot be read.
std::string last_lines(const std::filesystem::path& file);

}  // namespace hone
