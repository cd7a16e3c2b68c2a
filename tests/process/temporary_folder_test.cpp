#include "process/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace hone {
namespace {

TEST(TemporaryFolder, IsRemovedWithItsContents) {
  std::string path;
  {
    const hone::temporary_folder folder("test");
    path = folder.path();
    std::ofstream(path + "/file") << "text";
    EXPECT_TRUE(std::filesystem::exists(path + "/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, IsRemovedAtTheEndOfTheProcess) {
  const hone::temporary_folder kept("test");
  const std::string marker = kept.path() + "/path";
  EXPECT_EXIT(
      {
        auto* const leaked = new hone::temporary_folder("test");
        std::ofstream(marker) << leaked->path();
        // The child's copy of `kept` is the parent's folder.
        std::filesystem::rename(kept.path(), kept.path() + "-moved");
        end_process(3);
      },
      testing::ExitedWithCode(3), "");
  std::string path;
  std::ifstream(kept.path() + "-moved/path") >> path;
  std::filesystem::rename(kept.path() + "-moved", kept.path());
  ASSERT_FALSE(path.empty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace hone
