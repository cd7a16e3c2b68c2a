#include "process/seccomp_filters.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hone {
namespace {

// Returns the error of a system call with arguments that no kernel accepts, in a process with a
// filter.
int error_of(const seccomp_program& filter, const std::function<long()>& call) {
  const pid_t child = fork();
  if (child == 0) {
    install_filter(filter);
    _exit(call() == -1 ? errno : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns the error of a call in a thread that was started before the filter.
int error_in_another_thread(const seccomp_program& filter, const std::function<long()>& call) {
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<bool> is_filtered = false;
    std::thread other([&] {
      while (!is_filtered) std::this_thread::yield();
      _exit(call() == -1 ? errno : 0);
    });
    install_filter(filter);
    is_filtered = true;
    other.join();
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::function<long()> with_bad_arguments(long number) {
  return [number] { return syscall(number, -1, nullptr, -1, nullptr, -1, -1); };
}

// System calls that an untrusted process may not make, apart from those on files.
const std::map<std::string, long> refused = {
    {"mount", SYS_mount},
    {"mount_setattr", SYS_mount_setattr},
    {"fsopen", SYS_fsopen},
    {"open_tree", SYS_open_tree},
    {"name_to_handle_at", SYS_name_to_handle_at},
    {"open_by_handle_at", SYS_open_by_handle_at},
    {"unshare", SYS_unshare},
    {"setns", SYS_setns},
    {"kill", SYS_kill},
    {"tgkill", SYS_tgkill},
    {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"pidfd_getfd", SYS_pidfd_getfd},
    {"ptrace", SYS_ptrace},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"execve", SYS_execve},
    {"vfork", SYS_vfork},
    {"socket", SYS_socket},
    {"io_uring_setup", SYS_io_uring_setup},
    {"bpf", SYS_bpf},
    {"perf_event_open", SYS_perf_event_open},
    {"userfaultfd", SYS_userfaultfd},
    {"shmget", SYS_shmget},
    {"mq_open", SYS_mq_open},
    {"mq_unlink", SYS_mq_unlink},
    {"futimesat", SYS_futimesat},
    {"fremovexattr", SYS_fremovexattr},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"sched_setscheduler", SYS_sched_setscheduler},
    {"sched_setattr", SYS_sched_setattr},
    {"setpriority", SYS_setpriority},
    {"ioprio_set", SYS_ioprio_set},
};

TEST(SeccompFilters, UntrustedProcessesAreRefusedWhatReachesOthers) {
  for (const auto& [name, number] : refused) {
    EXPECT_EQ(error_of(reader_filter(), with_bad_arguments(number)), EACCES) << name;
    EXPECT_EQ(error_of(fenced_writer_filter(), with_bad_arguments(number)), EACCES) << name;
  }
}

TEST(SeccompFilters, CoverThreadsThatRunAlready) {
  EXPECT_EQ(error_in_another_thread(reader_filter(), with_bad_arguments(SYS_socket)), EACCES);
  EXPECT_EQ(error_in_another_thread(reader_filter(), [] { return fcntl(0, F_GETFD); }), 0);
}

TEST(SeccompFilters, SystemCallsThatAreNewerThanTheFilterDoNotExist) {
  constexpr long fchmodat2 = 452;
  constexpr long x32 = 0x40000000;
  for (const long number : {fchmodat2, fchmodat2 + 1, 999L, x32 + SYS_getpid})
    EXPECT_EQ(error_of(reader_filter(), with_bad_arguments(number)), ENOSYS) << number;
}

TEST(SeccompFilters, SecludedProcessesSetNoTimersAndWatchNoFiles) {
  for (const long number : {SYS_alarm, SYS_setitimer, SYS_timer_create, SYS_inotify_add_watch})
    EXPECT_EQ(error_of(secluding_filter(), with_bad_arguments(number)), EACCES) << number;
}

TEST(SeccompFilters, UntrustedProcessesCannotHaveTheKernelSignalOthers) {
  constexpr long with_unused_bits = 1L << 32U;
  for (const long command :
       {long{F_SETOWN}, long{F_SETOWN_EX}, long{F_SETSIG}, with_unused_bits + F_SETOWN})
    EXPECT_EQ(error_of(reader_filter(), [&] { return syscall(SYS_fcntl, 0, command, 0); }), EACCES)
        << command;
  for (const unsigned long command : {FIOSETOWN, SIOCSPGRP}) {
    const int owner = 0;
    EXPECT_EQ(error_of(reader_filter(), [&] { return ioctl(0, command, &owner); }), EACCES)
        << command;
  }
  EXPECT_EQ(error_of(reader_filter(), [] { return fcntl(0, F_GETFD); }), 0);
}

TEST(SeccompFilters, UntrustedProcessesMayDoWhatStaysWithinThem) {
  for (const auto& [name, number] : std::map<std::string, long>{{"read", SYS_read},
                                                                {"close", SYS_close},
                                                                {"fstat", SYS_fstat},
                                                                {"mprotect", SYS_mprotect}})
    EXPECT_THAT(error_of(reader_filter(), with_bad_arguments(number)),
                testing::AllOf(testing::Ne(EACCES), testing::Ne(0)))
        << name;
  EXPECT_EQ(error_of(reader_filter(), [] { return open("/proc/self/status", O_RDONLY); }), 0);
  EXPECT_EQ(error_of(reader_filter(), [] { return open("/dev/null", O_WRONLY); }), EACCES);
  EXPECT_EQ(error_of(fenced_writer_filter(), [] { return open("/dev/null", O_WRONLY); }), 0);
}

}  // namespace
}  // namespace hone
