#include "process/child_process.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "process/read_fence.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// All data that a new child needs, prepared before the fork: between vfork and exec the child
// shares this process's memory and may only make system calls.
struct launch_plan {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  // Each source is duplicated to a number above all sources and targets first, from `parking` on,
  // then to its target, so that none overwrites another.
  std::vector<int> sources;
  std::vector<int> targets;
  int parking = 0;
  const char* folder;
  rlimit address_space;
  rlimit file;
  rlimit cpu;
  bool limit_address_space, limit_file, limit_cpu;
  bool ignores_stop_signals;
  sock_fprog filter;
  int read_fence;
  bool reads_own_facts;
  pid_t parent;
  int highest_descriptor;  // for kernels without close_range
};

// `options` must outlive the plan.
launch_plan plan_launch(const child_options& options) {
  launch_plan plan{};
  plan.arguments = c_strings(options.arguments);
  plan.environment = c_strings(options.environment);
  for (const auto& [ours, theirs] : options.descriptors) {
    plan.sources.push_back(ours);
    plan.targets.push_back(theirs);
    plan.parking = std::max({plan.parking, ours + 1, theirs + 1});
  }
  plan.folder = options.folder ? options.folder->c_str() : nullptr;
  plan.limit_address_space = options.address_space_bytes > 0;
  plan.address_space = {options.address_space_bytes, options.address_space_bytes};
  plan.limit_file = options.file_bytes > 0;
  plan.ignores_stop_signals = options.ignores_stop_signals;
  plan.file = {options.file_bytes, options.file_bytes};
  plan.limit_cpu = options.cpu_seconds > 0;
  plan.cpu = {options.cpu_seconds, options.cpu_seconds + 1};
  if (options.filter != nullptr) {
    plan.filter.len = static_cast<unsigned short>(options.filter->size());
    plan.filter.filter = const_cast<sock_filter*>(options.filter->data());
  }
  plan.read_fence = options.read_fence;
  plan.reads_own_facts = options.reads_own_facts;
  plan.parent = getpid();
  plan.highest_descriptor = static_cast<int>(sysconf(_SC_OPEN_MAX));
  return plan;
}

bool set_limit(int which, const rlimit& limit) {
  return ::syscall(SYS_prlimit64, 0, which, &limit, nullptr) == 0;
}

// Turns the forked child into the planned program. Returns only after a failure.
void exec_in_child(const launch_plan& plan) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != plan.parent) return;
  // A terminal's interrupt must reach the parent alone, because the parent ends its children
  // itself.
  setpgid(0, 0);
  if (plan.ignores_stop_signals) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
  }
  // This process may ignore or handle the signals of failed writes. Programs expect their default
  // actions.
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  if (plan.reads_own_facts && !admit_own_facts(plan.read_fence)) return;
  if (plan.read_fence >= 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                               ::syscall(SYS_landlock_restrict_self, plan.read_fence, 0) != 0))
    return;
  for (std::size_t i = 0; i < plan.sources.size(); ++i) {
    if (dup2(plan.sources[i], plan.parking + static_cast<int>(i)) < 0) return;
  }
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    if (dup2(plan.parking + static_cast<int>(i), plan.targets[i]) < 0) return;
  }
  int last = 2;
  for (const int target : plan.targets) last = target > last ? target : last;
  if (::syscall(SYS_close_range, last + 1, ~0U, 0) != 0) {
    for (int fd = last + 1; fd < plan.highest_descriptor; ++fd) close(fd);
  }
  if (plan.folder != nullptr && chdir(plan.folder) != 0) return;
  const rlimit no_core{0, 0};
  if (!set_limit(RLIMIT_CORE, no_core)) return;
  if (plan.limit_address_space && !set_limit(RLIMIT_AS, plan.address_space)) return;
  if (plan.limit_file && !set_limit(RLIMIT_FSIZE, plan.file)) return;
  if (plan.limit_cpu && !set_limit(RLIMIT_CPU, plan.cpu)) return;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.filter.len > 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.filter) != 0) return;
  }
  execve(plan.arguments[0], plan.arguments.data(), plan.environment.data());
}

// Forks and starts the planned program; sets `error` if that fails in the child. Must not be
// inlined: vfork returns twice into this stack frame, which holds nothing else.
[[gnu::noinline]] pid_t start(const launch_plan& plan, volatile int* error) {
  // NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork): the child
  // must set limits and a filter, which posix_spawn cannot do, and touches no memory but `error`.
  const pid_t pid = vfork();
  if (pid == 0) {
    exec_in_child(plan);
    *error = errno != 0 ? errno : ECHILD;
    _exit(127);
  }
  return pid;
  // NOLINTEND(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork)
}

}  // namespace

child_process::child_process(const child_options& options) {
  const launch_plan plan = plan_launch(options);
  // Signal handlers must not run in the child while it shares this process's memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  volatile int error = 0;
  errno = 0;
  const pid_t pid = start(plan, &error);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0)
    throw std::system_error(fork_error, std::generic_category(),
                            "cannot start " + options.arguments[0]);
  if (error != 0) {
    int status = 0;
    waitpid(pid, &status, 0);
    throw std::system_error(error, std::generic_category(), "cannot start " + options.arguments[0]);
  }
  pid_ = pid;
}

child_process& child_process::operator=(child_process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = other.pid_;
    other.pid_ = -1;
  }
  return *this;
}

void child_process::send_kill() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void child_process::kill() {
  if (pid_ <= 0) return;
  send_kill();
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::optional<int> child_process::wait(std::chrono::steady_clock::time_point deadline) {
  const unique_fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  pollfd waiting{handle.get(), POLLIN, 0};
  if (handle) poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

std::string companion_program(const std::string& name, const char* variable) {
  if (const char* named = std::getenv(variable)) return named;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {self, self.parent_path()}) {
    if (access((folder / name).c_str(), X_OK) == 0) return (folder / name).string();
  }
  throw std::runtime_error(name + " is not next to this program (" + self.string() + "); " +
                           variable + " may name it");
}

void inherit(std::vector<std::string>& environment, std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (const char* value = std::getenv(variable))
      environment.push_back(std::string(variable) + "=" + value);
  }
}

}  // namespace hone
