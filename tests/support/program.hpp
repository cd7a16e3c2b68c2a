#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone::testing_support {

// A program under test, with its outputs in files. The destructor kills it. Throws
// std::runtime_error if it cannot fork.
class program {
 public:
  struct surroundings {
    std::filesystem::path folder;  // working directory; empty for the test's own
    // Limit on the size of a file in bytes. Writing beyond it fails, as on a full disk.
    std::uint64_t largest_file = RLIM_INFINITY;
  };

  explicit program(std::vector<std::string> command)
      : program(std::move(command), surroundings{}) {}
  program(std::vector<std::string> command, const surroundings& where) {
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("cannot fork");
    if (child_ > 0) return;
    const int out = open((files_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int err = open((files_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (!where.folder.empty() && chdir(where.folder.c_str()) != 0) _exit(126);
    if (where.largest_file != RLIM_INFINITY) {
      const rlimit limit{where.largest_file, where.largest_file};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  ~program() {
    if (!status_) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  pid_t id() const { return child_; }
  void send(int signal_number) const { kill(child_, signal_number); }
  bool has_ended() {
    int status = 0;
    if (!status_ && waitpid(child_, &status, WNOHANG) == child_) status_ = status;
    return status_.has_value();
  }
  // Waits for the end of the program. Returns its exit code, 128 + signal if a signal ended it, or
  // nullopt if it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    if (!eventually([&] { return has_ended(); }, limit)) return std::nullopt;
    return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
  }
  std::string out() const { return read_file(files_ / "out"); }
  std::string err() const { return read_file(files_ / "err"); }

 private:
  temporary_folder files_;
  pid_t child_ = -1;
  std::optional<int> status_;
};

struct outcome_of_program {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string hone_program() { return std::string(HONE_BINARY_DIR) + "/hone"; }

// Runs `hone` with these arguments to its end. Throws std::runtime_error if it does not end within
// `limit`.
inline outcome_of_program run_hone(std::vector<std::string> arguments,
                                   const program::surroundings& where = {},
                                   std::chrono::milliseconds limit = std::chrono::seconds(100)) {
  arguments.insert(arguments.begin(), hone_program());
  program p(std::move(arguments), where);
  const auto code = p.wait(limit);
  if (!code) throw std::runtime_error("hone did not end in time; it said: " + p.out() + p.err());
  expect_plain_messages(p.err());
  return {*code, p.out(), p.err()};
}

}  // namespace hone::testing_support
