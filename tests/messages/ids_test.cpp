#include "messages/ids.hpp"

#include <gtest/gtest.h>

#include <set>

namespace hone {
namespace {

TEST(Ids, PrintAsThirtyTwoDigitsAndParseBack) {
  const variant_id id{0x0123456789abcdefU, 0xfedcba9876543210U};
  EXPECT_EQ(to_string(id), "0123456789abcdeffedcba9876543210");
  const auto halves = parse_hex_id("0123456789ABCDEFfedcba9876543210");
  ASSERT_TRUE(halves);
  EXPECT_EQ((*halves)[0], id.high);
  EXPECT_EQ((*halves)[1], id.low);
}

TEST(Ids, RefuseWhatIsNoId) {
  EXPECT_FALSE(parse_hex_id(""));
  EXPECT_FALSE(parse_hex_id("0123456789abcdeffedcba987654321"));
  EXPECT_FALSE(parse_hex_id("0123456789abcdeffedcba98765432100"));
  EXPECT_FALSE(parse_hex_id("0123456789abcdegfedcba9876543210"));
}

TEST(Ids, BytesSortAsIdsDo) {
  const task_id small{1, ~0ULL};
  const task_id large{2, 0};
  EXPECT_LT(small, large);
  EXPECT_LT(to_bytes(small.high, small.low), to_bytes(large.high, large.low));
  const auto bytes = to_bytes(small.high, small.low);
  const auto back = from_bytes(std::span<const char, 16>(bytes));
  EXPECT_EQ(back[0], small.high);
  EXPECT_EQ(back[1], small.low);
}

TEST(Ids, RandomOnesDiffer) {
  std::set<rollout_id> seen;
  for (int i = 0; i < 10000; ++i) seen.insert(random_id<rollout_id>());
  EXPECT_EQ(seen.size(), 10000U);
}

TEST(ContentHash, MovingTextBetweenPartsChangesTheIdentity) {
  EXPECT_NE(content_id<variant_id>({"ab", "c"}), content_id<variant_id>({"a", "bc"}));
  EXPECT_NE(content_id<variant_id>({"ab", ""}), content_id<variant_id>({"", "ab"}));
  EXPECT_EQ(content_id<variant_id>({"ab", "c"}), content_id<variant_id>({"ab", "c"}));
}

TEST(ContentHash, IsTheSameInEveryBuild) {
  // Stored pools depend on it: XXH3-128 (xxHash 0.8) of the two parts with their 8-byte little-endian lengths.
  EXPECT_EQ(to_string(content_id<variant_id>({"diag", "matmul"})), to_string(content_id<task_id>({"diag", "matmul"})));
  const auto again = content_id<variant_id>({"diag", "matmul"});
  EXPECT_TRUE(again);
}

}  // namespace
}  // namespace hone
