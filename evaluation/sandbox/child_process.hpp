#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

struct sock_filter;

namespace hone {

// A file descriptor with one owner.
class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  unique_fd(const unique_fd&) = delete;
  unique_fd& operator=(const unique_fd&) = delete;
  ~unique_fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// How a child is started. Everything here is applied between fork and exec, so the child never runs
// without it.
struct child_options {
  std::vector<std::string> arguments;    // [0]: the program's path
  std::vector<std::string> environment;  // "KEY=value"; nothing is inherited
  std::vector<std::pair<int, int>>
      descriptors;                        // (ours, the child's number); all others are closed
  std::optional<std::string> folder;      // to start in
  std::uint64_t address_space_bytes = 0;  // 0: unlimited, as the following
  std::uint64_t file_bytes = 0;
  std::uint64_t cpu_seconds = 0;
  const std::vector<sock_filter>* filter = nullptr;  // seccomp program, installed with no_new_privs
};

// A child that dies with the thread that started it, however that ends. Destruction kills and reaps
// it.
class child_process {
 public:
  child_process() = default;
  explicit child_process(const child_options& options);  // throws std::system_error
  child_process(child_process&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  child_process& operator=(child_process&& other) noexcept;
  ~child_process() { kill(); }

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  // Waits until it ends or the deadline passes; then the wait status, or nothing.
  std::optional<int> wait(std::chrono::steady_clock::time_point deadline);
  void kill();

 private:
  pid_t pid_ = -1;
};

struct process_result {
  int status = 0;          // as waitpid gives it
  bool timed_out = false;  // killed at the deadline
  bool too_much = false;   // killed because it printed more than it may
  std::string out;
  std::string err;
  bool succeeded() const;
};

// Runs a program to its end with `input` as its standard input. Descriptors 0 to 2 are set here.
process_result run_process(child_options options, std::string_view input,
                           std::chrono::milliseconds time_limit,
                           std::size_t max_output_bytes = 64U << 20U);

// The path of a program of Hone's that runs beside this one: what the environment's `variable`
// names, else in this program's folder or the one above. Throws std::runtime_error.
std::string companion_program(const std::string& name, const char* variable);

// Adds those of the variables that are set here.
void inherit(std::vector<std::string>& environment, std::initializer_list<const char*> variables);

// "exit code 1", "signal 11 (Segmentation fault)".
std::string describe_status(int status);

// Seccomp program for tools that work on hostile text from standard input: no sockets, no tracing,
// and no source file can be opened (GCC opens every file that a source names with O_NOCTTY, and
// nothing else so).
const std::vector<sock_filter>& toolchain_filter();

// Seccomp program for a process that runs a stranger's Python: it opens nothing for writing,
// changes no file, starts and signals no process, and reaches no network. Reading, memory, and
// threads of its own are left to it.
const std::vector<sock_filter>& reader_filter();

// Installs a filter in this process, for good. Throws std::system_error.
void install_filter(const std::vector<sock_filter>& filter);

}  // namespace hone
