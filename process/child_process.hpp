#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/seccomp_filters.hpp"

namespace hone {

// Options for starting a child process. All of them are applied between fork and exec, so the
// child's program never runs without them.
struct child_options {
  std::vector<std::string> arguments;    // [0]: the program's path
  std::vector<std::string> environment;  // "KEY=value"; nothing is inherited
  // (descriptor here, number in the child). The child closes all descriptors above 2 that are also
  // above the highest number given here.
  std::vector<std::pair<int, int>> descriptors;
  std::optional<std::string> folder;        // working directory
  std::uint64_t address_space_bytes = 0;    // 0: unlimited
  std::uint64_t file_bytes = 0;             // largest file that the child may write; 0: unlimited
  std::uint64_t cpu_seconds = 0;            // 0: unlimited
  const seccomp_program* filter = nullptr;  // installed with no_new_privs; null: none
  int read_fence = -1;                      // rules for reading files (read_fence.hpp); -1: none
  bool reads_own_facts = false;             // adds the child's own /proc/self to its read fence
  // SIGINT and SIGTERM: a signal for all processes of a job must not end what the parent wants to
  // finish. A program that has children may need SIGTERM to end them.
  bool ignores_stop_signals = false;
};

// A child process that dies with the thread that started it, however that thread ends. The
// destructor kills and reaps the child.
class child_process {
 public:
  child_process() = default;
  // Starts the child; throws std::system_error if that fails. `options` may be destroyed
  // afterwards.
  explicit child_process(const child_options& options);
  child_process(child_process&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  child_process& operator=(child_process&& other) noexcept;
  ~child_process() { kill(); }

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  // Waits until the child ends or the deadline passes. Returns the wait status, or nullopt at the
  // deadline. The child must be running.
  std::optional<int> wait(std::chrono::steady_clock::time_point deadline);
  // Kills the child with SIGKILL and reaps it. Does nothing if there is no running child.
  void kill();
  // Sends the child SIGKILL and does not wait for its end; kill() or the destructor reaps it. Does
  // nothing if there is no running child.
  void send_kill() const;

 private:
  pid_t pid_ = -1;
};

// Returns the path of another program of Hone: the value of the environment variable `variable` if
// it is set, else `name` in this program's folder or in the parent folder. Throws
// std::runtime_error if there is no such program.
std::string companion_program(const std::string& name, const char* variable);

// Appends "KEY=value" for each of the variables that is set in this process.
void inherit(std::vector<std::string>& environment, std::initializer_list<const char*> variables);

// Describes a wait status: "exit code 1", "signal 11 (Segmentation fault)".
std::string describe_status(int status);

}  // namespace hone
