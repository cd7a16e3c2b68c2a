#include "process/run_process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "process/unique_fd.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

process_result shell(const std::string& script, milliseconds limit = milliseconds(5000),
                     std::size_t max_output = 1U << 20U, std::string_view input = "") {
  child_options options;
  options.arguments = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  return run_process(options, input, limit, max_output);
}

TEST(ChildProcess, RunsAProgramWithInputAndOutput) {
  const auto result = shell("tr a-z A-Z; echo oops >&2; exit 3", milliseconds(5000), 1000, "hello");
  EXPECT_EQ(result.out, "HELLO");
  EXPECT_EQ(result.err, "oops\n");
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(describe_status(result.status), "exit code 3");
}

TEST(ChildProcess, InheritsNeitherEnvironmentNorDescriptors) {
  setenv("HONE_TEST_SECRET", "visible", 1);
  const int leaked = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  const auto result = shell("echo $HONE_TEST_SECRET; ls /proc/self/fd");
  EXPECT_THAT(result.out, testing::Not(HasSubstr("visible")));
  EXPECT_THAT(result.out,
              testing::Not(HasSubstr("\n" + std::to_string(std::max(leaked, 5)) + "\n")));
  close(leaked);
}

TEST(ChildProcess, GetsItsDescriptorsWhateverTheirNumbers) {
  for (const int first : {3, 64, 200, 400}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const unique_fd read_end(ends[0]);
    unique_fd out(fcntl(ends[1], F_DUPFD_CLOEXEC, first));
    unique_fd err(fcntl(ends[1], F_DUPFD_CLOEXEC, first + 1));
    close(ends[1]);
    const unique_fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    child_options options;
    options.arguments = {"/bin/sh", "-c", "echo out; echo err >&2"};
    options.descriptors = {{null.get(), 0}, {out.get(), 1}, {err.get(), 2}};
    child_process child(options);
    out.reset();
    err.reset();
    std::array<char, 100> text{};
    std::size_t size = 0;
    for (ssize_t n = 0; (n = read(read_end.get(), &text.at(size), text.size() - size)) > 0;)
      size += static_cast<std::size_t>(n);
    EXPECT_EQ(std::string(text.data(), size), "out\nerr\n") << first;
  }
}

TEST(ChildProcess, HandlesSignalsOfWritesAsProgramsExpect) {
  signal(SIGPIPE, SIG_IGN);
  const auto result = shell("(trap - PIPE; sleep 0.1; echo lost; echo survived >&2) | true");
  signal(SIGPIPE, SIG_DFL);
  EXPECT_THAT(result.err, testing::Not(HasSubstr("survived")));
}

TEST(ChildProcess, IsKilledAtItsDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = shell("sleep 60", milliseconds(50));
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(ChildProcess, IsKilledWhenItPrintsTooMuch) {
  EXPECT_TRUE(shell("while true; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
                    milliseconds(20000), 100000)
                  .too_much);
}

TEST(ChildProcess, RespectsLimitsOnMemoryCoreFilesAndTime) {
  child_options options;
  options.arguments = {
      "/bin/sh", "-c",
      "ulimit -v; ulimit -c; ulimit -t; head -c 5000 /dev/zero > /dev/null && echo done"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.address_space_bytes = 512U << 20U;
  options.cpu_seconds = 7;
  EXPECT_EQ(run_process(options, "", milliseconds(5000)).out, "524288\n0\n7\ndone\n");
}

TEST(ChildProcess, IgnoresInputThatItsProgramDoesNotRead) {
  EXPECT_TRUE(shell("exit 0", milliseconds(5000), 1000, std::string(1U << 20U, 'x')).succeeded());
}

TEST(ChildProcess, IgnoresStopSignalsIfAskedTo) {
  child_options options;
  options.arguments = {"/bin/sh", "-c", "kill -TERM $$; kill -INT $$; echo alive"};
  EXPECT_EQ(run_process(options, "", milliseconds(5000), 1000).out, "");
  options.ignores_stop_signals = true;
  EXPECT_EQ(run_process(options, "", milliseconds(5000), 1000).out, "alive\n");
}

TEST(ChildProcess, ThrowsIfTheProgramDoesNotExist) {
  child_options options;
  options.arguments = {"/no/such/program"};
  EXPECT_THROW(run_process(options, "", milliseconds(1000)), std::system_error);
}

TEST(ChildProcess, DiesWithItsParent) {
  // The parent is a fork of this test. It writes its child's process id to a pipe and waits to be
  // killed.
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    child_options options;
    options.arguments = {"/bin/sleep", "60"};
    const child_process child(options);
    const pid_t pid = child.pid();
    if (write(ends[1], &pid, sizeof pid) != sizeof pid) _exit(1);
    while (true) pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  EXPECT_TRUE(testing_support::is_alive(child));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(testing_support::eventually([&] { return !testing_support::is_alive(child); },
                                          milliseconds(2000)));
  close(ends[0]);
  close(ends[1]);
}

TEST(ChildProcess, IsKilledAndReapedByItsDestructor) {
  pid_t pid = 0;
  {
    child_options options;
    options.arguments = {"/bin/sleep", "60"};
    child_process child(options);
    pid = child.pid();
    EXPECT_FALSE(child.wait(std::chrono::steady_clock::now()));
    child_process moved = std::move(child);
    EXPECT_FALSE(child.running());  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(moved.running());
  }
  EXPECT_FALSE(testing_support::all_processes().contains(pid));
}

TEST(ToolchainFilter, RefusesSocketsAndSourceFilesAndNothingElse) {
  child_options options;
  options.arguments = {"/usr/bin/env", "python3", "-c",
                       "import os, socket\n"
                       "try:\n  socket.socket()\nexcept OSError as e:\n  print('socket', e.errno)\n"
                       "try:\n  os.open('/etc/hostname', os.O_RDONLY | os.O_NOCTTY)\nexcept "
                       "OSError as e:\n  print('source', e.errno)\n"
                       "print('other', os.open('/dev/null', os.O_RDONLY) >= 0)\n"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.filter = &toolchain_filter();
  const auto result = run_process(options, "", milliseconds(10000));
  EXPECT_EQ(result.out, "socket 13\nsource 2\nother True\n") << result.err;
}

}  // namespace
}  // namespace hone
