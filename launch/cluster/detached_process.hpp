#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hone {

// The record of a process that outlives the process that started it. The number alone could
// mean another, later process; the time of its start and the machine's boot tell them apart.
struct process_mark {
  pid_t pid = 0;
  std::uint64_t start = 0;  // in clock ticks after boot: field 22 of /proc/PID/stat, see proc(5)
  std::string boot;         // /proc/sys/kernel/random/boot_id
};

// Return the mark as one line, and the mark that such a line holds, if it holds one.
std::string print(const process_mark& mark);
std::optional<process_mark> parse_process_mark(const std::string& line);

// Starts a program in a separate session, with this process's environment. It continues after
// this process has ended. `arguments[0]` is looked up by find_program(). Standard output and
// standard error are appended to the file `log`. `input` is a descriptor that becomes its standard
// input, or -1 for none. Throws std::runtime_error.
process_mark start_detached(std::vector<std::string> arguments, const std::filesystem::path& log,
                            int input = -1);

// Returns true until the process has ended. Collects it if it is an ended child of this process.
bool is_running(const process_mark& mark);

// Sends SIGTERM to each process, waits until all of them have ended, and after `grace` sends
// SIGKILL to those that are left and to what they started in their sessions' process groups.
void stop_processes(const std::vector<process_mark>& marks, std::chrono::milliseconds grace);

// Writes down that a process has been started. If `write` throws, stops the process, because nobody
// would ever find it, and throws the same.
void record_start(const process_mark& started, const std::function<void()>& write);

// Waits until the condition holds and returns true, or returns false after `limit`.
template <class Condition>
bool wait_until(const Condition& condition, std::chrono::milliseconds limit,
                std::chrono::milliseconds pause = std::chrono::milliseconds(20));

void pause_for(std::chrono::milliseconds duration);

template <class Condition>
bool wait_until(const Condition& condition, std::chrono::milliseconds limit,
                std::chrono::milliseconds pause) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause_for(pause);
  }
  return true;
}

}  // namespace hone
