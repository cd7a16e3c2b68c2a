#include "evaluation/sandbox/child/cpu/shared_heap.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace hone {
namespace {

TEST(SharedHeap, UsesReleasedMemoryAgain) {
  shared_heap heap(1024);
  void* first = heap.allocate(500);
  void* second = heap.allocate(500);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(heap.allocate(64), nullptr) << "both take 512 bytes";
  heap.release(first);
  EXPECT_EQ(heap.allocate(100), first);
  EXPECT_NE(heap.allocate(300), nullptr) << "behind the hundred bytes";
  EXPECT_TRUE(heap.contains(second));
  EXPECT_FALSE(heap.contains(&heap));
}

TEST(SharedHeap, IsSharedWithAForkedProcess) {
  shared_heap heap(4096);
  auto* text = static_cast<char*>(heap.allocate(64));
  const pid_t pid = fork();
  if (pid == 0) {
    std::strcpy(text, "from the child");
    _exit(0);
  }
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_STREQ(text, "from the child");
}

}  // namespace
}  // namespace hone
