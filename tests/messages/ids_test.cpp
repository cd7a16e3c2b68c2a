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

TEST(Ids, RefuseTextThatIsNotAnId) {
  EXPECT_FALSE(parse_hex_id(""));
  EXPECT_FALSE(parse_hex_id("0123456789abcdeffedcba987654321"));
  EXPECT_FALSE(parse_hex_id("0123456789abcdeffedcba98765432100"));
  EXPECT_FALSE(parse_hex_id("0123456789abcdegfedcba9876543210"));
}

TEST(Ids, BytesSortInTheOrderOfIds) {
  const task_id small{1, ~0ULL};
  const task_id large{2, 0};
  EXPECT_LT(small, large);
  EXPECT_LT(to_bytes(small.high, small.low), to_bytes(large.high, large.low));
  const auto bytes = to_bytes(small.high, small.low);
  const auto back = from_bytes(std::span<const char, 16>(bytes));
  EXPECT_EQ(back[0], small.high);
  EXPECT_EQ(back[1], small.low);
}

TEST(Ids, RandomIdsDiffer) {
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
  // Stored pools depend on this hash: XXH3-128 (xxHash 0.8) of the parts, each behind its 8-byte
  // little-endian length. The expected values were computed by the library's function for a whole
  // text. At 240 bytes the library changes its method.
  EXPECT_EQ(to_string(content_id<variant_id>({"diag", "matmul"})),
            "73ec2f6f0a5512d324c82f21198f2fee");
  EXPECT_EQ(to_string(content_id<variant_id>({"", ""})), "e5189a9599e3f86205ea23ef06e28b2d");
  EXPECT_EQ(to_string(content_id<variant_id>({std::string(224, 'a')})),
            "20779af69d6bc2b046f925f457c29fc2");
  EXPECT_EQ(to_string(content_id<variant_id>({std::string(232, 'a')})),
            "284c38ae5072332fef86c183c9159505");
  EXPECT_EQ(to_string(content_id<variant_id>({std::string(240, 'a')})),
            "448da56a2bd1637c37148faed9f91c41");
  std::string large(100000, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31);
  EXPECT_EQ(to_string(content_id<task_id>({large, "x"})), "8ff36294873970f2c2d899d47efc0952");
}

}  // namespace
}  // namespace hone
