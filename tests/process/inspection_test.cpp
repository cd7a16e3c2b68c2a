#include "process/inspection.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

namespace hone {
namespace {

constexpr uid_t somebody = 65534;

const std::array<char, 8> secret = {'s', 'e', 'c', 'r', 'e', 't', '!', '\0'};

// Gives up root, which may inspect everything.
void become_somebody() {
  if (geteuid() == 0 && setresuid(somebody, somebody, somebody) != 0) _exit(99);
}

// Attempts of a process to inspect another process of its user. Return whether it has succeeded.
bool opens(pid_t process, const char* file) {
  return open(("/proc/" + std::to_string(process) + "/" + file).c_str(), O_RDONLY) >= 0;
}
bool reads_memory(pid_t process) {
  std::array<char, 8> read{};
  iovec into{read.data(), read.size()};
  iovec from{const_cast<char*>(secret.data()), secret.size()};
  return process_vm_readv(process, &into, 1, &from, 1, 0) == 8 && read == secret;
}
bool traces(pid_t process) { return ptrace(PTRACE_SEIZE, process, nullptr, nullptr) == 0; }

using attempt = std::function<bool(pid_t)>;

// Returns whether a process can do this with another one of its user, which forbids it or does not.
bool can(const attempt& what, bool is_forbidden) {
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) return false;
  const pid_t victim = fork();
  if (victim == 0) {
    become_somebody();
    prctl(PR_SET_DUMPABLE, 1);  // as a process of this user is from the start
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (is_forbidden) forbid_inspection();
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  const pid_t other = fork();
  if (other == 0) {
    become_somebody();
    _exit(what(victim) ? 1 : 0);
  }
  int status = 0;
  waitpid(other, &status, 0);
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST(Inspection, IsForbiddenToProcessesOfTheSameUser) {
  const std::array<std::pair<const char*, attempt>, 6> attempts = {{
      {"environ", [](pid_t p) { return opens(p, "environ"); }},
      {"maps", [](pid_t p) { return opens(p, "maps"); }},
      {"mem", [](pid_t p) { return opens(p, "mem"); }},
      {"fd", [](pid_t p) { return opens(p, "fd"); }},
      {"process_vm_readv", reads_memory},
      {"ptrace", traces},
  }};
  EXPECT_TRUE(can(attempts.front().second, false)) << "the test would show nothing";
  for (const auto& [name, what] : attempts) EXPECT_FALSE(can(what, true)) << name;
}

}  // namespace
}  // namespace hone
