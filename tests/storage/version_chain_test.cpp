#include "storage/version_chain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::ElementsAre;

// 0 - 1 - 2 - 3 (abandoned)
//      \- 4 - 5 (head)
class ChainTest : public testing::Test {
 protected:
  ChainTest() : db_(folder_ / "db", database::mode::create_or_open), chain_(db_) {
    for (const auto& [number, parent, depth] : std::vector<std::tuple<int, int, int>>{
             {0, 0, 0}, {1, 0, 1}, {2, 1, 2}, {3, 2, 3}, {4, 1, 2}, {5, 4, 3}}) {
      chain_.add(make_version(static_cast<std::uint64_t>(number),
                              static_cast<std::uint64_t>(parent),
                              static_cast<std::uint32_t>(depth)));
    }
    chain_.set_head(5);
  }
  temporary_folder folder_;
  database db_;
  version_chain chain_;
};

TEST_F(ChainTest, ThePathFollowsParents) {
  EXPECT_THAT(chain_.path_to(5), ElementsAre(0U, 1U, 4U, 5U));
  EXPECT_THAT(chain_.path_to(3), ElementsAre(0U, 1U, 2U, 3U));
  EXPECT_THAT(chain_.path_to(9), ElementsAre());
}

TEST_F(ChainTest, AncestorsAreThoseOnThePath) {
  EXPECT_TRUE(chain_.is_ancestor(1, 5));
  EXPECT_TRUE(chain_.is_ancestor(5, 5));
  EXPECT_FALSE(chain_.is_ancestor(2, 5));
  EXPECT_FALSE(chain_.is_ancestor(5, 1));
}

TEST_F(ChainTest, LagOfAnAbandonedVersionCountsFromWhereItsBranchLeftTheChain) {
  EXPECT_EQ(chain_.lag_of(5), 0U);
  EXPECT_EQ(chain_.lag_of(4), 1U);
  EXPECT_EQ(chain_.lag_of(0), 3U);
  EXPECT_EQ(chain_.lag_of(3), 2U);  // its branch left the chain at version 1
  EXPECT_FALSE(chain_.lag_of(77));
}

}  // namespace
}  // namespace hone
