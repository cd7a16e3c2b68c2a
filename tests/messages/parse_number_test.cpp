#include "messages/parse_number.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hone {
namespace {

TEST(ParseNumber, TakesWholeTextsAlone) {
  EXPECT_EQ(parse_number<std::uint32_t>("42"), 42U);
  EXPECT_EQ(parse_number<std::int64_t>("-7"), -7);
  for (const char* text : {"", "4x", " 4", "4 ", "+4", "0x4", "-"})
    EXPECT_FALSE(parse_number<std::uint32_t>(text)) << text;
}

TEST(ParseNumber, RefusesWhatTheTypeCannotHold) {
  EXPECT_EQ(parse_number<std::uint32_t>("4294967295"), 4294967295U);
  EXPECT_FALSE(parse_number<std::uint32_t>("4294967296"));
  EXPECT_FALSE(parse_number<std::uint32_t>("-1"));
  EXPECT_FALSE(parse_number<std::uint64_t>("99999999999999999999"));
  EXPECT_FALSE(parse_number<std::int64_t>("99999999999999999999"));
}

}  // namespace
}  // namespace hone
