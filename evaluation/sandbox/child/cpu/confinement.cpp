#include "evaluation/sandbox/child/cpu/confinement.hpp"

#include <asm/prctl.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/arena.hpp"
#include "process/throw_errno.hpp"

namespace hone {
namespace {

constexpr const char* the_artifact = "/hone/artifact.so";
constexpr gid_t nobody = 65534;

// System calls that are allowed with any arguments: memory, the passing of time, and the end of the
// process and of its child.
// clang-format off
constexpr std::array unrestricted_calls = {
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(brk),
    SCMP_SYS(futex), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(clock_getres), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(getcpu), SCMP_SYS(getrandom), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(sigaltstack), SCMP_SYS(exit), SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getrusage),
    SCMP_SYS(get_mempolicy), SCMP_SYS(fstat), SCMP_SYS(close), SCMP_SYS(membarrier),
    SCMP_SYS(rseq), SCMP_SYS(set_robust_list), SCMP_SYS(wait4)};
// clang-format on

int artifact_descriptor = -1;
std::uint32_t* refused = nullptr;

// Handles a system call that the filter has stopped. Opening the artifact's path, as dlopen does,
// returns a copy of its descriptor. Any other call ends the process.
void on_refused_call(int /*signal*/, siginfo_t* info, void* context) {
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_syscall == SYS_openat && artifact_descriptor >= 0 &&
      std::strcmp(reinterpret_cast<const char*>(registers[REG_RSI]), the_artifact) == 0) {
    registers[REG_RAX] = static_cast<greg_t>(dup(artifact_descriptor));
    return;
  }
  if (refused != nullptr) *refused = static_cast<std::uint32_t>(info->si_syscall) + 1;
  _exit(refused_call_exit_code);
}

void limit(__rlimit_resource which, std::uint64_t value) {
  const rlimit both{value, value};
  if (setrlimit(which, &both) != 0) throw_errno("cannot set a resource limit");
}

std::uint64_t address_space_in_use() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t pages = 0;
  in >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void drop_root() {
  if (geteuid() != 0) return;
  if (setgroups(0, nullptr) != 0 || setresgid(nobody, nobody, nobody) != 0 ||
      setresuid(nobody, nobody, nobody) != 0) {
    // A container may map no other user.
    if (errno != EPERM && errno != EINVAL) throw_errno("cannot give up root");
  }
  // A change of the user clears the signal that the death of the parent sends.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw_errno("cannot tie the process to its parent");
}

void install_filter(int socket, int child) {
  const std::unique_ptr<void, decltype(&seccomp_release)> context(seccomp_init(SCMP_ACT_TRAP),
                                                                  seccomp_release);
  bool ok = context != nullptr;
  const auto allow = [&](int call) {
    ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, call, 0) == 0;
  };
  for (const int call : unrestricted_calls) allow(call);
  // Calls that read the artifact while it is loaded. No other file is open. fstat is allowed by
  // descriptor alone.
  for (const int call : {SCMP_SYS(pread64), SCMP_SYS(lseek), SCMP_SYS(dup)}) allow(call);
  ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
                              SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH)) == 0;
  // Writing is limited to the socket. Reading is also allowed from higher descriptors, which are
  // the artifact's.
  const auto the_socket = static_cast<scmp_datum_t>(socket);
  for (const int call : {SCMP_SYS(write), SCMP_SYS(sendmsg), SCMP_SYS(sendto)}) {
    ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, call, 1,
                                SCMP_A0(SCMP_CMP_EQ, the_socket)) == 0;
  }
  for (const int call : {SCMP_SYS(read), SCMP_SYS(recvmsg), SCMP_SYS(recvfrom)}) {
    ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, call, 1,
                                SCMP_A0(SCMP_CMP_GE, the_socket)) == 0;
  }
  // Advice that allocators and sanitizers give. Other advice affects the pages of the arena itself,
  // which later sessions use.
  for (const int advice :
       {MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP}) {
    ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(madvise), 1,
                                SCMP_A2(SCMP_CMP_EQ, static_cast<scmp_datum_t>(advice))) == 0;
  }
  // A session continues the process of its kernels, and gives huge pages to the heap between them.
  if (child > 0) {
    ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(kill), 2,
                                SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(child)),
                                SCMP_A1(SCMP_CMP_EQ, SIGCONT)) == 0;
    ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(madvise), 1,
                                SCMP_A2(SCMP_CMP_EQ, collapse_advice)) == 0;
  }
  // abort() signals its own process, and kernels stop theirs.
  ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                              SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()))) == 0;
  // A process must ask for AMX before it uses AMX.
  ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(arch_prctl), 1,
                              SCMP_A0(SCMP_CMP_GE, 0x1021)) == 0;
  ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(rt_sigaction), 1,
                              SCMP_A1(SCMP_CMP_EQ, 0)) == 0;
  // glibc and allocators name memory for debugging. The refusal is silent, as on old kernels.
  ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                              SCMP_A0(SCMP_CMP_EQ, 0x53564d41)) == 0;
  ok = ok && seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                              SCMP_A2(SCMP_CMP_EQ, 0)) == 0;
  if (!ok || seccomp_load(context.get()) != 0) throw_errno("cannot install the system call filter");
}

}  // namespace

const char* artifact_path() { return the_artifact; }

void confine(int socket, int child, int artifact, std::uint64_t private_bytes,
             std::uint32_t* refused_call) {
  artifact_descriptor = artifact;
  refused = refused_call;
  struct sigaction action {};
  action.sa_sigaction = on_refused_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, nullptr) != 0) throw_errno("cannot handle SIGSYS");
  drop_root();
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, address_space_in_use() + private_bytes);
  limit(RLIMIT_NOFILE, 16);
  if (prctl(PR_SET_DUMPABLE, 0) != 0) throw_errno("cannot forbid dumps");
  install_filter(socket, child);
}

void close_door() {
  if (artifact_descriptor >= 0) close(artifact_descriptor);
  artifact_descriptor = -1;
}

}  // namespace hone
