#include "process/file_lock.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

TEST(FileLock, HasOneHolderUntilItsDescriptorIsClosed) {
  const temporary_folder folder;
  unique_fd first = try_lock_file(folder / "lock");
  ASSERT_TRUE(first);
  EXPECT_FALSE(try_lock_file(folder / "lock"));
  EXPECT_TRUE(try_lock_file(folder / "another"));
  auto second =
      std::async(std::launch::async, [&] { return lock_file(folder / "lock").get() >= 0; });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  first.reset();
  EXPECT_TRUE(second.get());
}

TEST(FileLock, CanBeTakenByUsersWhoMayOnlyReadItsFile) {
  const temporary_folder folder;
  const mode_t mask = umask(077);
  try_lock_file(folder / "lock");
  umask(mask);
  struct stat facts {};
  ASSERT_EQ(stat((folder / "lock").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0644U);
}

TEST(FileLock, FollowsNoLinkAndLeavesFilesOfOthersAsTheyAre) {
  const temporary_folder folder;
  std::ofstream(folder / "private") << "secret";
  chmod((folder / "private").c_str(), 0600);
  std::filesystem::create_symlink(folder / "private", folder / "lock");
  EXPECT_THROW(try_lock_file(folder / "lock"), std::runtime_error);
  EXPECT_THROW(is_locked(folder / "lock"), std::runtime_error);
  try_lock_file(folder / "private");
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THROW(try_lock_file(folder / "folder"), std::runtime_error);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(try_lock_file(folder / "pipe"), std::runtime_error) << "and does not wait for it";
  struct stat facts {};
  ASSERT_EQ(stat((folder / "private").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST(FileLock, TellsWhetherItIsHeldWithoutKeepingOthersOut) {
  const temporary_folder folder;
  EXPECT_FALSE(is_locked(folder / "lock"));
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
  unique_fd held = try_lock_file(folder / "lock");
  EXPECT_TRUE(is_locked(folder / "lock"));
  held.reset();
  EXPECT_FALSE(is_locked(folder / "lock"));
  std::atomic<bool> ends = false;
  auto looks = std::async(std::launch::async, [&] {
    while (!ends) is_locked(folder / "lock");
  });
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(try_lock_file(folder / "lock", std::chrono::milliseconds(500)));
  ends = true;
}

TEST(FileLock, NamesItsHolder) {
  const temporary_folder folder;
  EXPECT_EQ(describe_holder(folder / "lock"), "") << "there is no such file";
  unique_fd held = try_lock_file(folder / "lock");
  EXPECT_TRUE(describe_holder(folder / "lock")
                  .starts_with("process " + std::to_string(getpid()) + " (process_test"))
      << describe_holder(folder / "lock");
  auto waits = std::async(std::launch::async, [&] { return lock_file(folder / "lock"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  held.reset();
  held = waits.get();
  held.reset();
  EXPECT_EQ(describe_holder(folder / "lock"), "");
}

TEST(FileLock, ThrowsIfThereIsNoSuchFolder) {
  const temporary_folder folder;
  EXPECT_THROW(try_lock_file(folder / "nothing/lock"), std::runtime_error);
  EXPECT_THROW(lock_file(folder / "nothing/lock"), std::runtime_error);
}

}  // namespace
}  // namespace hone
