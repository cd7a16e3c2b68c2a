#include "process/read_fence.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;
using testing_support::write_file;

class ReadFence : public testing::Test {
 protected:
  ReadFence() {
    std::filesystem::create_directories(folder_ / "inside");
    write_file(folder_ / "inside" / "file", "public");
    write_file(folder_ / "outside", "secret");
    std::filesystem::create_symlink(folder_ / "outside", folder_ / "inside" / "link");
  }
  // Returns the exit code of a shell command behind the fence.
  int run(const std::string& command, int fence, bool reads_own_facts = false) const {
    child_options options;
    options.reads_own_facts = reads_own_facts;
    options.arguments = {"/bin/sh", "-c", command};
    options.read_fence = fence;
    child_process child(options);
    const auto status = child.wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }

  temporary_folder folder_;
};

TEST_F(ReadFence, LeavesOnlyTheNamedFilesReadable) {
  const unique_fd fence =
      make_read_fence({"/bin", "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null",
                       folder_ / "inside", folder_ / "is not there"});
  if (!fence) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string inside = (folder_ / "inside" / "file").string();
  const std::string outside = (folder_ / "outside").string();
  EXPECT_EQ(run("cat " + outside, -1), 0);
  EXPECT_EQ(run("cat " + inside + " > /dev/null", fence.get()), 0);
  const std::string link = (folder_ / "inside" / "link").string();
  for (const std::string& hidden :
       {"cat " + outside, "cat " + link, "ls " + outside + "/..", std::string("cat /etc/passwd"),
        "cat /proc/" + std::to_string(getpid()) + "/environ"})
    EXPECT_NE(run(hidden, fence.get()), 0) << hidden;
}

TEST_F(ReadFence, AdmitsFactsAboutTheProcessItselfAlone) {
  const auto fence = [] {
    return make_read_fence({"/bin", "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null"});
  };
  if (!fence()) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string own = "read line < /proc/self/maps";
  const std::string parents = "read line < /proc/" + std::to_string(getpid()) + "/maps";
  EXPECT_NE(run(own, fence().get()), 0);
  EXPECT_EQ(run(own, fence().get(), true), 0);
  EXPECT_EQ(run(parents, -1), 0);
  EXPECT_NE(run(parents, fence().get(), true), 0);
}

}  // namespace
}  // namespace hone
