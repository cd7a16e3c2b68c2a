#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/cluster/cluster_file.hpp"
#include "launch/cluster/launcher.hpp"

namespace hone {

// The head is the process of `hone run`, detached from the command that started it. Its record is
// the file RUN/cluster/head.node: its process mark, and the name of its machine.

// Returns the command of the head: PROGRAM run CONFIG --dir RUN ... `identity` is the folder of the
// head's identity; empty for none.
std::vector<std::string> head_command(const cluster_plan& plan, const std::string& program,
                                      const std::filesystem::path& identity, bool resume);

// Returns the file that the head's output is appended to.
std::filesystem::path head_log(const std::filesystem::path& run);

// Starts the head and waits until it has written RUN/address. Returns that address. Throws
// std::runtime_error, with the last lines of the log, if the head ends before that; and stops the
// head and throws if it takes longer than `limit`.
std::string start_head(const std::filesystem::path& run, const std::vector<std::string>& command,
                       std::chrono::milliseconds limit);

// Sends the head SIGTERM, and SIGKILL after 60 s. Does nothing if it has ended.
void stop_head(const std::filesystem::path& run);

// Returns the head; its phase is `ended` also if it was never started.
launched_node describe_head(const std::filesystem::path& run);

// Throws std::runtime_error if the head was started on another machine, where its process and those
// of local and ssh nodes are not to be seen.
void require_own_machine(const std::filesystem::path& run);

}  // namespace hone
