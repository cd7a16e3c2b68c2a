#include "evaluation/sandbox/child_process.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace hone {
namespace {

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Everything that the new child needs, laid out before the fork: between vfork and exec it shares
// our memory and may only make system calls.
struct launch_plan {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<int> sources;  // parked above every target, then moved into place
  std::vector<int> targets;
  const char* folder;
  rlimit address_space;
  rlimit file;
  rlimit cpu;
  bool limit_address_space, limit_file, limit_cpu;
  sock_fprog filter;
  pid_t parent;
  int highest_descriptor;  // where there is no close_range
};

bool set_limit(int which, const rlimit& limit) {
  return ::syscall(SYS_prlimit64, 0, which, &limit, nullptr) == 0;
}

// Runs in the child. Returns only when something failed.
void become(const launch_plan& plan) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != plan.parent) return;
  setpgid(0, 0);  // a terminal's interrupt is for us alone: we end our children ourselves
  constexpr int parking = 200;
  for (std::size_t i = 0; i < plan.sources.size(); ++i) {
    if (dup2(plan.sources[i], parking + static_cast<int>(i)) < 0) return;
  }
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    if (dup2(parking + static_cast<int>(i), plan.targets[i]) < 0) return;
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

// Kept out of line: the stack frame that vfork returns into twice holds nothing else.
[[gnu::noinline]] pid_t start(const launch_plan& plan, volatile int* error) {
  const pid_t pid = vfork();
  if (pid == 0) {
    become(plan);
    *error = errno != 0 ? errno : ECHILD;
    _exit(127);
  }
  return pid;
}

std::vector<sock_filter> export_filter(scmp_filter_ctx context) {
  const unique_fd file(memfd_create("filter", MFD_CLOEXEC));
  if (!file || seccomp_export_bpf(context, file.get()) != 0)
    throw std::runtime_error("cannot export a seccomp filter");
  const off_t size = lseek(file.get(), 0, SEEK_END);
  std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size)
    throw std::runtime_error("cannot read a seccomp filter");
  return program;
}

}  // namespace

void unique_fd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

child_process::child_process(const child_options& options) {
  launch_plan plan{};
  plan.arguments = c_strings(options.arguments);
  plan.environment = c_strings(options.environment);
  for (const auto& [ours, theirs] : options.descriptors) {
    plan.sources.push_back(ours);
    plan.targets.push_back(theirs);
  }
  plan.folder = options.folder ? options.folder->c_str() : nullptr;
  plan.limit_address_space = options.address_space_bytes > 0;
  plan.address_space = {options.address_space_bytes, options.address_space_bytes};
  plan.limit_file = options.file_bytes > 0;
  plan.file = {options.file_bytes, options.file_bytes};
  plan.limit_cpu = options.cpu_seconds > 0;
  plan.cpu = {options.cpu_seconds, options.cpu_seconds + 1};
  if (options.filter != nullptr) {
    plan.filter.len = static_cast<unsigned short>(options.filter->size());
    plan.filter.filter = const_cast<sock_filter*>(options.filter->data());
  }
  plan.parent = getpid();
  plan.highest_descriptor = static_cast<int>(sysconf(_SC_OPEN_MAX));
  // Signals must not run our handlers in the child while it shares our memory.
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

void child_process::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
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

bool process_result::succeeded() const {
  return !timed_out && !too_much && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

process_result run_process(child_options options, std::string_view input,
                           std::chrono::milliseconds time_limit, std::size_t max_output_bytes) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + time_limit;
  int in[2];  // a socket: writing to a child that has gone must not raise SIGPIPE
  int out[2];
  int err[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 || pipe2(out, O_CLOEXEC) != 0 ||
      pipe2(err, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  unique_fd child_in(in[0]);
  unique_fd our_in(in[1]);
  unique_fd our_out(out[0]);
  unique_fd child_out(out[1]);
  unique_fd our_err(err[0]);
  unique_fd child_err(err[1]);
  options.descriptors.insert(options.descriptors.end(),
                             {{child_in.get(), 0}, {child_out.get(), 1}, {child_err.get(), 2}});
  child_process child(options);
  child_in.reset();
  child_out.reset();
  child_err.reset();

  process_result result;
  std::size_t written = 0;
  if (input.empty()) our_in.reset();
  std::vector<char> buffer(64U << 10U);
  while (our_out || our_err) {
    std::vector<pollfd> waiting;
    if (our_in) waiting.push_back({our_in.get(), POLLOUT, 0});
    if (our_out) waiting.push_back({our_out.get(), POLLIN, 0});
    if (our_err) waiting.push_back({our_err.get(), POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0 || poll(waiting.data(), waiting.size(), static_cast<int>(left)) == 0) {
      result.timed_out = true;
      child.kill();
      return result;
    }
    for (const pollfd& ready : waiting) {
      if (ready.revents == 0) continue;
      if (our_in && ready.fd == our_in.get()) {
        const ssize_t n = send(our_in.get(), input.data() + written, input.size() - written,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) written += static_cast<std::size_t>(n);
        if ((n < 0 && errno != EAGAIN) || written == input.size()) our_in.reset();
        continue;
      }
      unique_fd& source = our_out && ready.fd == our_out.get() ? our_out : our_err;
      const ssize_t n = read(source.get(), buffer.data(), buffer.size());
      if (n <= 0) {
        source.reset();
        continue;
      }
      (&source == &our_out ? result.out : result.err)
          .append(buffer.data(), static_cast<std::size_t>(n));
      if (result.out.size() + result.err.size() > max_output_bytes) {
        result.too_much = true;
        child.kill();
        return result;
      }
    }
  }
  const auto status = child.wait(deadline);
  result.timed_out = !status;
  result.status = status.value_or(0);
  return result;
}

const std::vector<sock_filter>& toolchain_filter() {
  static const std::vector<sock_filter> program = [] {
    const std::unique_ptr<void, decltype(&seccomp_release)> context(seccomp_init(SCMP_ACT_ALLOW),
                                                                    seccomp_release);
    const auto refuse = [&](int call) {
      seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EACCES), call, 0);
    };
    for (const int call :
         {SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(ptrace),
          SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(io_uring_setup),
          SCMP_SYS(openat2), SCMP_SYS(open_by_handle_at)}) {
      refuse(call);
    }
    seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(openat), 1,
                     SCMP_A2(SCMP_CMP_MASKED_EQ, O_NOCTTY, O_NOCTTY));
    seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(open), 1,
                     SCMP_A1(SCMP_CMP_MASKED_EQ, O_NOCTTY, O_NOCTTY));
    return export_filter(context.get());
  }();
  return program;
}

const std::vector<sock_filter>& reader_filter() {
  static const std::vector<sock_filter> program = [] {
    const std::unique_ptr<void, decltype(&seccomp_release)> context(seccomp_init(SCMP_ACT_ALLOW),
                                                                    seccomp_release);
    const auto refuse = [&](std::initializer_list<int> calls) {
      for (const int call : calls) seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EACCES), call, 0);
    };
    // Files: only reading.
    constexpr std::pair<int, int> writing[] = {
        {O_ACCMODE, O_WRONLY}, {O_ACCMODE, O_RDWR}, {O_CREAT, O_CREAT}, {O_TRUNC, O_TRUNC}};
    for (const auto& [mask, flags] : writing) {
      const auto bits = static_cast<scmp_datum_t>(mask);
      const auto value = static_cast<scmp_datum_t>(flags);
      seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 1,
                       SCMP_A2(SCMP_CMP_MASKED_EQ, bits, value));
      seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EACCES), SCMP_SYS(open), 1,
                       SCMP_A1(SCMP_CMP_MASKED_EQ, bits, value));
    }
    refuse({SCMP_SYS(openat2),   SCMP_SYS(creat),       SCMP_SYS(open_by_handle_at),
            SCMP_SYS(unlink),    SCMP_SYS(unlinkat),    SCMP_SYS(rename),
            SCMP_SYS(renameat),  SCMP_SYS(renameat2),   SCMP_SYS(mkdir),
            SCMP_SYS(mkdirat),   SCMP_SYS(rmdir),       SCMP_SYS(link),
            SCMP_SYS(linkat),    SCMP_SYS(symlink),     SCMP_SYS(symlinkat),
            SCMP_SYS(truncate),  SCMP_SYS(chmod),       SCMP_SYS(fchmod),
            SCMP_SYS(fchmodat),  SCMP_SYS(chown),       SCMP_SYS(fchown),
            SCMP_SYS(lchown),    SCMP_SYS(fchownat),    SCMP_SYS(mknod),
            SCMP_SYS(mknodat),   SCMP_SYS(setxattr),    SCMP_SYS(lsetxattr),
            SCMP_SYS(fsetxattr), SCMP_SYS(removexattr), SCMP_SYS(utime),
            SCMP_SYS(utimes),    SCMP_SYS(utimensat),   SCMP_SYS(mount),
            SCMP_SYS(umount2),   SCMP_SYS(chroot),      SCMP_SYS(pivot_root),
            SCMP_SYS(unshare),   SCMP_SYS(setns)});
    // Other processes.
    refuse({SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo),
            SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_send_signal), SCMP_SYS(ptrace),
            SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_getfd),
            SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork)});
    constexpr scmp_datum_t thread = 0x10000;  // CLONE_THREAD
    seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EACCES), SCMP_SYS(clone), 1,
                     SCMP_A0(SCMP_CMP_MASKED_EQ, thread, 0));
    seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3),
                     0);  // its flags lie in memory; the C library then uses clone
    seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EACCES), SCMP_SYS(prlimit64), 1,
                     SCMP_A0(SCMP_CMP_NE, 0));
    // The network, and the kernel's larger doors.
    refuse({SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind),
            SCMP_SYS(io_uring_setup), SCMP_SYS(bpf), SCMP_SYS(perf_event_open),
            SCMP_SYS(userfaultfd), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
            SCMP_SYS(shmget), SCMP_SYS(msgget), SCMP_SYS(semget)});
    return export_filter(context.get());
  }();
  return program;
}

void install_filter(const std::vector<sock_filter>& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot install a system call filter");
  }
}

std::string companion_program(const std::string& name, const char* variable) {
  if (const char* named = std::getenv(variable)) return named;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {self, self.parent_path()}) {
    if (access((folder / name).c_str(), X_OK) == 0) return (folder / name).string();
  }
  throw std::runtime_error(name + " is not beside this program (" + self.string() + "); " +
                           variable + " may name it");
}

void inherit(std::vector<std::string>& environment, std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (const char* value = std::getenv(variable))
      environment.push_back(std::string(variable) + "=" + value);
  }
}

}  // namespace hone
