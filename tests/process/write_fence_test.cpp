#include "process/write_fence.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "process/seccomp_filters.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;
using testing_support::write_file;

// Returns the exit code of a process that confines itself as a GPU's process does and then does
// `work`, which returns the code; 99 if the kernel has no Landlock.
int confined(const std::filesystem::path& folder, const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    if (!confine_writing(folder)) _exit(99);
    install_filter(fenced_writer_filter());
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class WriteFence : public testing::Test {
 protected:
  WriteFence() {
    std::filesystem::create_directories(folder_ / "inside");
    write_file(folder_ / "outside.txt", "kept");
  }
  int in_fence(const std::function<int()>& work) const {
    return confined(folder_ / "inside", work);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  temporary_folder folder_;
};

TEST_F(WriteFence, FilesBeneathItsFolderAreMadeRenamedAndRemoved) {
  const int code = in_fence([&] {
    if (mkdir(path("inside/a").c_str(), 0700) != 0) return 1;
    const int file = open(path("inside/a/b").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, "x", 1) != 1) return 2;
    if (rename(path("inside/a/b").c_str(), path("inside/a/c").c_str()) != 0) return 3;
    return unlink(path("inside/a/c").c_str()) == 0 ? 0 : 4;
  });
  if (code == 99) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(code, 0);
}

TEST_F(WriteFence, NothingElseIsWritten) {
  const std::string outside = path("outside.txt");
  const std::vector<std::function<bool()>> attempts = {
      [&] { return open(outside.c_str(), O_WRONLY) >= 0; },
      [&] { return open(outside.c_str(), O_RDWR) >= 0; },
      [&] { return open(outside.c_str(), O_RDONLY | O_TRUNC) >= 0; },
      [&] { return open(path("new.txt").c_str(), O_WRONLY | O_CREAT, 0600) >= 0; },
      [&] { return truncate(outside.c_str(), 0) == 0; },
      [&] { return unlink(outside.c_str()) == 0; },
      [&] { return mkdir(path("new").c_str(), 0700) == 0; },
      [&] { return rename(outside.c_str(), path("inside/taken").c_str()) == 0; },
      [&] { return link(outside.c_str(), path("inside/linked").c_str()) == 0; },
      [&] { return symlink(outside.c_str(), path("inside/soft").c_str()) == 0; },
      [&] { return chmod(outside.c_str(), 0777) == 0; },
      [&] { return open(path("inside/../outside.txt").c_str(), O_WRONLY) >= 0; },
  };
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const int code = in_fence([&] { return attempts[i]() ? 1 : 0; });
    if (code == 99) GTEST_SKIP() << "this kernel has no Landlock";
    EXPECT_EQ(code, 0) << "attempt " << i << " succeeded";
  }
  EXPECT_EQ(std::filesystem::file_size(outside), 4U);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "inside"));
}

TEST_F(WriteFence, ReadingIsNotAffected) {
  const int code =
      in_fence([&] { return open(path("outside.txt").c_str(), O_RDONLY) >= 0 ? 0 : 1; });
  if (code == 99) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace hone
