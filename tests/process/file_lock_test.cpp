#include "process/file_lock.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

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

TEST(FileLock, ThrowsIfThereIsNoSuchFolder) {
  const temporary_folder folder;
  EXPECT_THROW(try_lock_file(folder / "nothing/lock"), std::runtime_error);
  EXPECT_THROW(lock_file(folder / "nothing/lock"), std::runtime_error);
}

}  // namespace
}  // namespace hone
