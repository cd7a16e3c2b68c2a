#include "network/thread_priority.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace hone {
namespace {

int niceness_of_this_thread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

// Returns the niceness of a new thread that has asked for less priority, and that of a thread which
// it starts then.
std::pair<int, int> niceness_for(thread_work work) {
  std::pair<int, int> found;
  std::thread([&] {
    let_messages_pass(work);
    found.first = niceness_of_this_thread();
    std::thread([&] { found.second = niceness_of_this_thread(); }).join();
  }).join();
  return found;
}

TEST(ThreadPriority, OfTheRunsWorkLiesBetweenMessagesAndStrangers) {
  const int messages = niceness_of_this_thread();
  if (messages > 9) GTEST_SKIP() << "there is no room for two lower priorities";
  const auto [run, started_by_run] = niceness_for(thread_work::run);
  const auto [strangers, started_by_strangers] = niceness_for(thread_work::strangers_and_files);
  EXPECT_GT(run, messages);
  EXPECT_GT(strangers, run);
  EXPECT_EQ(started_by_run, run);
  EXPECT_EQ(started_by_strangers, strangers);
}

TEST(ThreadPriority, OfTheFirstThreadStaysWhatTheUserChose) {
  const int before = niceness_of_this_thread();
  let_messages_pass(thread_work::run);
  EXPECT_EQ(niceness_of_this_thread(), before);
}

}  // namespace
}  // namespace hone
