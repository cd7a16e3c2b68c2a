// Tests that a killed process leaves no child process running.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "evaluation/backends/cpu/cpu_device.hpp"
#include "tests/support/evaluator.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using testing_support::all_processes;
using testing_support::descendants_of;
using testing_support::eventually;

// Allows for loading LibTorch three times before the first call on a busy machine.
constexpr milliseconds start_limit{60000};
// After this time, a node that is started again must find the machine free.
constexpr milliseconds death_limit{2000};

struct work {
  const char* name;
  const char* document;
  // Part of the name of the child processes that must run before the owner is killed.
  std::string waits_for;
  // The least number of such processes.
  std::size_t count;
};

// A process that owns a CPU device and judges one document over and over. The destructor kills it.
class device_owner {
 public:
  explicit device_owner(const std::string& document) : pid_(fork()) {
    if (pid_ != 0) return;
    try {
      const task t = load_task(std::filesystem::path(HONE_SOURCE_DIR) /
                               "tests/evaluation/exploits/tasks/scale.toml");
      const auto device = make_cpu_device(
          {.core = -1, .share_cores = true, .node = "doomed", .call_limit = milliseconds(600000)});
      testing_support::evaluator judge(
          *device, {.host_program = milliseconds(600000), .block = milliseconds(600000)});
      while (true) judge.evaluate(document, t);
    } catch (...) {
      _exit(1);
    }
  }
  ~device_owner() { kill_it(); }
  pid_t pid() const { return pid_; }
  void kill_it() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

std::size_t running(pid_t owner, const std::string& name) {
  const auto all = all_processes();
  std::size_t count = 0;
  for (const pid_t pid : descendants_of(owner)) {
    const auto found = all.find(pid);
    count += found != all.end() && found->second.name.find(name) != std::string::npos ? 1U : 0U;
  }
  return count;
}

class KillingADevicesOwner : public testing::TestWithParam<work> {};

TEST_P(KillingADevicesOwner, LeavesNoChildRunning) {
  device_owner owner(GetParam().document);
  ASSERT_TRUE(eventually(
      [&] { return running(owner.pid(), GetParam().waits_for) >= GetParam().count; }, start_limit))
      << "its work did not begin";
  const auto children = descendants_of(owner.pid());
  ASSERT_GE(children.size(), GetParam().count);
  owner.kill_it();
  EXPECT_TRUE(eventually(
      [&] {
        const auto all = all_processes();
        for (const pid_t child : children) {
          const auto found = all.find(child);
          if (found != all.end() && found->second.state != 'Z' && found->second.state != 'X')
            return false;
        }
        return true;
      },
      death_limit));
}

// A call that never ends, and a block that takes long to compile.
const char* const endless_call =
    "## Code Implementation\n```python\ndef forward(x: Tensor) -> Tensor:\n    i = 1\n    while i "
    "> 0:\n        i = 3 - i\n    return x\n```\n";
const char* const long_compilation =
    "## Code Implementation\n```cuda\n#define A(x) x x x x x x x x\n#define B(x) "
    "A(A(A(A(x))))\nextern \"C\" __global__ void k(float* a) { B(a[0] = sinf(a[1] * a[0]) + a[2]; "
    "a[1] += a[0];) }\n```\n"
    "```python\ndef forward(x: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n    launch(\"k\", "
    "[1], [1], y)\n    return y\n```\n";

INSTANTIATE_TEST_SUITE_P(Busy, KillingADevicesOwner,
                         // The four processes are the zygotes of the checker and of the device, and
                         // the sessions of the oracle and of the candidate.
                         testing::Values(work{"Running", endless_call, "hone-sandbox", 4},
                                         work{"Compiling", long_compilation, "cc1plus", 1}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace hone
