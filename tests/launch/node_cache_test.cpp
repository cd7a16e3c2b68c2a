#include "launch/node_cache.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

// Lets the user's cache be a folder of the test.
class NodeCache : public testing::Test {
 protected:
  NodeCache() { setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  ~NodeCache() override { unsetenv("XDG_CACHE_HOME"); }
  std::size_t folders() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache_.path() / "hone" / "nodes"))
      count += entry.is_directory() ? 1 : 0;
    return count;
  }

  temporary_folder cache_;
};

TEST_F(NodeCache, IsRemovedInTheEnd) {
  {
    const node_cache first("");
    const node_cache second("");
    EXPECT_NE(first.folder(), second.folder());
    EXPECT_EQ(folders(), 2U);
  }
  EXPECT_EQ(folders(), 0U);
}

TEST_F(NodeCache, RemovesThoseThatNobodyUsesAnyMore) {
  const node_cache used("");
  std::filesystem::create_directories(cache_.path() / "hone" / "nodes" / "of-a-killed-node");
  const node_cache next("");
  EXPECT_EQ(folders(), 2U) << "the killed node's is gone, and the first one is in use";
  EXPECT_TRUE(std::filesystem::exists(used.folder()));
}

TEST_F(NodeCache, ThatIsNamedStaysAndBelongsToOneNode) {
  const std::filesystem::path named = cache_.path() / "mine";
  {
    const node_cache cache(named);
    EXPECT_EQ(cache.folder(), named);
    EXPECT_THROW(node_cache{named}, std::runtime_error);
  }
  EXPECT_TRUE(std::filesystem::exists(named));
  const node_cache again(named);
}

}  // namespace
}  // namespace hone
