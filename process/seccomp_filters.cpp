#include "process/seccomp_filters.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "process/throw_errno.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

seccomp_program export_filter(scmp_filter_ctx context) {
  const unique_fd file(memfd_create("filter", MFD_CLOEXEC));
  if (!file || seccomp_export_bpf(context, file.get()) != 0)
    throw std::runtime_error("cannot export a seccomp filter");
  const off_t size = lseek(file.get(), 0, SEEK_END);
  seccomp_program program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size)
    throw std::runtime_error("cannot read a seccomp filter");
  return program;
}

// The first system call (Linux 6.6) that these filters do not know. Later ones change files in ways
// that rules by name cannot foresee.
constexpr std::uint32_t first_unknown_call = 452;

// Returns a filter for which unknown system calls, and those of the x32 ABI, do not exist.
seccomp_program without_unknown_calls(const seccomp_program& filter) {
  seccomp_program program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_unknown_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
  };
  program.insert(program.end(), filter.begin(), filter.end());
  return program;
}

enum class file_access { reads, writes };

// Without a rule, a filter admits the call, so that no rule may be missing.
template <class... Comparisons>
void add_rule(scmp_filter_ctx context, std::uint32_t action, int call, unsigned count,
              Comparisons... comparisons) {
  const int code = seccomp_rule_add(context, action, call, count, comparisons...);
  if (code != 0)
    throw std::system_error(-code, std::generic_category(), "cannot make a system call filter");
}

void refuse(scmp_filter_ctx context, std::initializer_list<int> calls) {
  for (const int call : calls) add_rule(context, SCMP_ACT_ERRNO(EACCES), call, 0);
}

// Refuses to open files with these flags. `mask`: the flags that matter.
void refuse_open(scmp_filter_ctx context, int mask, int flags, int error = EACCES) {
  const auto bits = static_cast<scmp_datum_t>(mask);
  const auto value = static_cast<scmp_datum_t>(flags);
  add_rule(context, SCMP_ACT_ERRNO(error), SCMP_SYS(openat), 1,
           SCMP_A2(SCMP_CMP_MASKED_EQ, bits, value));
  add_rule(context, SCMP_ACT_ERRNO(error), SCMP_SYS(open), 1,
           SCMP_A1(SCMP_CMP_MASKED_EQ, bits, value));
}

void refuse_changes_of_files(scmp_filter_ctx context, file_access access) {
  if (access == file_access::reads) {
    refuse_open(context, O_ACCMODE, O_WRONLY);
    refuse_open(context, O_ACCMODE, O_RDWR);
    refuse_open(context, O_CREAT, O_CREAT);
    refuse_open(context, O_TRUNC, O_TRUNC);
    refuse(context, {SCMP_SYS(creat), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rename),
                     SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
                     SCMP_SYS(rmdir)});
  } else {
    // Landlock admits this before Linux 6.2, because nothing is written.
    refuse_open(context, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC);
  }
  refuse(context, {SCMP_SYS(openat2),
                   SCMP_SYS(open_by_handle_at),
                   SCMP_SYS(link),
                   SCMP_SYS(linkat),
                   SCMP_SYS(symlink),
                   SCMP_SYS(symlinkat),
                   SCMP_SYS(truncate),
                   SCMP_SYS(chmod),
                   SCMP_SYS(fchmod),
                   SCMP_SYS(fchmodat),
                   SCMP_SYS(chown),
                   SCMP_SYS(fchown),
                   SCMP_SYS(lchown),
                   SCMP_SYS(fchownat),
                   SCMP_SYS(mknod),
                   SCMP_SYS(mknodat),
                   SCMP_SYS(setxattr),
                   SCMP_SYS(lsetxattr),
                   SCMP_SYS(fsetxattr),
                   SCMP_SYS(removexattr),
                   SCMP_SYS(utime),
                   SCMP_SYS(utimes),
                   SCMP_SYS(utimensat),
                   SCMP_SYS(futimesat),
                   SCMP_SYS(lremovexattr),
                   SCMP_SYS(fremovexattr),
                   SCMP_SYS(mount),
                   SCMP_SYS(umount2),
                   SCMP_SYS(chroot),
                   SCMP_SYS(pivot_root),
                   SCMP_SYS(unshare),
                   SCMP_SYS(setns),
                   SCMP_SYS(name_to_handle_at),
                   SCMP_SYS(fsopen),
                   SCMP_SYS(fsconfig),
                   SCMP_SYS(fsmount),
                   SCMP_SYS(fspick),
                   SCMP_SYS(open_tree),
                   SCMP_SYS(move_mount),
                   SCMP_SYS(mount_setattr)});
}

// Calls of nameless_filter() that are admitted with any arguments.
// clang-format off
constexpr std::array nameless_calls = {
    // memory
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise),
    SCMP_SYS(brk), SCMP_SYS(msync), SCMP_SYS(memfd_create), SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    // descriptors that are open
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(pread64),
    SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(dup2),
    SCMP_SYS(fstat), SCMP_SYS(getdents64), SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    // time, threads, and facts about the process
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(times), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(futex),
    SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(set_robust_list),
    SCMP_SYS(set_tid_address), SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(getpid),
    SCMP_SYS(gettid), SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(setrlimit),
    SCMP_SYS(getcpu), SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getcwd),
    SCMP_SYS(arch_prctl), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(restart_syscall),
    // the process's own handlers of signals
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack)};
constexpr std::array named_calls = {
    SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat),
    SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(unlink), SCMP_SYS(unlinkat)};
// clang-format on

seccomp_program untrusted_filter(file_access access) {
  const std::unique_ptr<void, decltype(&seccomp_release)> owner(seccomp_init(SCMP_ACT_ALLOW),
                                                                seccomp_release);
  const scmp_filter_ctx context = owner.get();
  refuse_changes_of_files(context, access);
  // Other processes may be neither started, signaled, traced nor read.
  refuse(context, {SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo),
                   SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_send_signal), SCMP_SYS(ptrace),
                   SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_getfd),
                   SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork)});
  // The owner of a descriptor gets a signal when data arrive. The kernel reads 32 bits of a
  // command.
  constexpr scmp_datum_t command_bits = 0xFFFFFFFF;
  for (const int command : {F_SETOWN, F_SETOWN_EX, F_SETSIG})
    add_rule(context, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(fcntl), 1,
             SCMP_A1(SCMP_CMP_MASKED_EQ, command_bits, static_cast<scmp_datum_t>(command)));
  for (const int command : {FIOSETOWN, SIOCSPGRP})
    add_rule(context, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(ioctl), 1,
             SCMP_A1(SCMP_CMP_MASKED_EQ, command_bits, static_cast<scmp_datum_t>(command)));
  constexpr scmp_datum_t thread = 0x10000;  // CLONE_THREAD
  add_rule(context, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(clone), 1,
           SCMP_A0(SCMP_CMP_MASKED_EQ, thread, 0));
  // The flags of clone3 lie in memory, where a filter cannot read them. The C library falls back
  // to clone.
  add_rule(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  add_rule(context, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0));
  // The process stays on the cores that it was given, at its priority.
  refuse(context,
         {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam),
          SCMP_SYS(sched_setattr), SCMP_SYS(setpriority), SCMP_SYS(ioprio_set)});
  // The network, and system calls that give access to large parts of the kernel.
  refuse(context,
         {SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind),
          SCMP_SYS(io_uring_setup), SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd),
          SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(shmget),
          SCMP_SYS(msgget), SCMP_SYS(semget), SCMP_SYS(mq_open), SCMP_SYS(mq_unlink)});
  return without_unknown_calls(export_filter(context));
}

}  // namespace

const seccomp_program& toolchain_filter() {
  static const seccomp_program program = [] {
    const std::unique_ptr<void, decltype(&seccomp_release)> context(seccomp_init(SCMP_ACT_ALLOW),
                                                                    seccomp_release);
    refuse(context.get(),
           {SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(ptrace),
            SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(io_uring_setup),
            SCMP_SYS(openat2), SCMP_SYS(open_by_handle_at)});
    refuse_open(context.get(), O_NOCTTY, O_NOCTTY, ENOENT);
    return export_filter(context.get());
  }();
  return program;
}

const seccomp_program& reader_filter() {
  static const seccomp_program program = untrusted_filter(file_access::reads);
  return program;
}

const seccomp_program& fenced_writer_filter() {
  static const seccomp_program program = untrusted_filter(file_access::writes);
  return program;
}

const seccomp_program& secluding_filter() {
  static const seccomp_program program = [] {
    const std::unique_ptr<void, decltype(&seccomp_release)> context(seccomp_init(SCMP_ACT_ALLOW),
                                                                    seccomp_release);
    refuse(context.get(), {SCMP_SYS(alarm), SCMP_SYS(setitimer), SCMP_SYS(timer_create),
                           SCMP_SYS(inotify_add_watch), SCMP_SYS(fanotify_init)});
    return export_filter(context.get());
  }();
  return program;
}

seccomp_program nameless_filter() {
  const std::unique_ptr<void, decltype(&seccomp_release)> owner(
      seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), seccomp_release);
  const scmp_filter_ctx context = owner.get();
  for (const int call : nameless_calls) add_rule(context, SCMP_ACT_ALLOW, call, 0);
  for (const int call : named_calls) add_rule(context, SCMP_ACT_TRAP, call, 0);
  constexpr scmp_datum_t thread = 0x10000;  // CLONE_THREAD
  add_rule(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
           SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread));
  add_rule(context, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0));
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_DUPFD, F_DUPFD_CLOEXEC})
    add_rule(context, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
             SCMP_A1(SCMP_CMP_EQ, static_cast<scmp_datum_t>(command)));
  // abort() signals its own process.
  add_rule(context, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
           SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid())));
  // The C library asks whether descriptors are terminals, and names memory for debugging.
  add_rule(context, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 0);
  add_rule(context, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 0);
  return export_filter(context);
}

void install_filter(const seccomp_program& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("cannot give up new privileges");
  // The result is positive if another thread has filters that this one does not have.
  const long thread =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (thread < 0) throw_errno("cannot install a system call filter");
  if (thread > 0) throw std::runtime_error("cannot install a system call filter in all threads");
}

}  // namespace hone
