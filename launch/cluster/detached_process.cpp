#include "launch/cluster/detached_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "launch/cluster/programs.hpp"
#include "process/find_program.hpp"
#include "process/process_facts.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

constexpr std::chrono::seconds kill_limit{10};  // for the kernel to end what SIGKILL was sent to

const std::string& boot_of_this_machine() {
  static const std::string boot = [] {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string id;
    in >> id;
    return id.empty() ? std::string("unknown") : id;
  }();
  return boot;
}

// Sends a signal through a descriptor of the process, so that it cannot reach another one that got
// the number in between.
void send_signal(const process_mark& mark, int signal) {
  const unique_fd handle(static_cast<int>(syscall(SYS_pidfd_open, mark.pid, 0)));
  if (handle && is_running(mark))
    (void)syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
}

// Attributes and file actions of posix_spawn.
class spawn_settings {
 public:
  spawn_settings(int input, int log) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    if (input >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, input, 0);
    } else {
      posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions_, log, 1);
    posix_spawn_file_actions_adddup2(&actions_, log, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::string print(const process_mark& mark) {
  return std::to_string(mark.pid) + " " + std::to_string(mark.start) + " " + mark.boot;
}

std::optional<process_mark> parse_process_mark(const std::string& line) {
  std::istringstream in(line);
  process_mark mark;
  if (!(in >> mark.pid >> mark.start >> mark.boot) || mark.pid <= 0) return std::nullopt;
  return mark;
}

process_mark start_detached(std::vector<std::string> arguments, const std::filesystem::path& log,
                            int input) {
  const unique_fd output(
      open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  if (!output)
    throw std::runtime_error(log.string() + ": cannot be written (" + strerror(errno) + ")");
  arguments[0] = find_program(arguments[0]);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const spawn_settings settings(input, output.get());
  process_mark mark;
  const int error = posix_spawn(&mark.pid, words[0], settings.actions(), settings.attributes(),
                                words.data(), environ);
  if (error != 0)
    throw std::runtime_error(arguments[0] + ": cannot be started (" + strerror(error) + ")");
  mark.start = facts_of(mark.pid).start;
  mark.boot = boot_of_this_machine();
  return mark;
}

bool is_running(const process_mark& mark) {
  if (mark.boot != boot_of_this_machine()) return false;
  const process_facts facts = facts_of(mark.pid);
  if (facts.start != mark.start || facts.state == 'X') return false;
  if (facts.state != 'Z') return true;
  waitpid(mark.pid, nullptr, WNOHANG);
  return false;
}

void pause_for(std::chrono::milliseconds duration) { std::this_thread::sleep_for(duration); }

void stop_processes(const std::vector<process_mark>& marks, std::chrono::milliseconds grace) {
  const auto have_ended = [&marks] { return std::none_of(marks.begin(), marks.end(), is_running); };
  for (const process_mark& mark : marks) send_signal(mark, SIGTERM);
  if (wait_until(have_ended, grace)) return;
  for (const process_mark& mark : marks) {
    if (is_running(mark)) ::kill(-mark.pid, SIGKILL);
  }
  if (!wait_until(have_ended, kill_limit))
    throw std::runtime_error("a process has not ended 10 s after SIGKILL");
}

void record_start(const process_mark& started, const std::function<void()>& write) {
  try {
    write();
  } catch (...) {
    stop_processes({started}, std::chrono::seconds(10));
    throw;
  }
}

}  // namespace hone
