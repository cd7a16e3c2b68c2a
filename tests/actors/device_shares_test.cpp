#include "actors/device_shares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::ElementsAre;

TEST(DeviceShares, AreLeftAsTheyAreIfTheirSumIsWanted) {
  EXPECT_THAT(share_devices({{4, 1}, {4, 3}}, 4), ElementsAre(1, 3));
}

TEST(DeviceShares, AreReducedWhereMostIsAtWork) {
  EXPECT_THAT(share_devices({{4, 2}, {8, 8}, {4, 4}}, 6), ElementsAre(2, 2, 2));
  EXPECT_THAT(share_devices({{2, 2}, {2, 2}}, 3), ElementsAre(1, 2));
  EXPECT_THAT(share_devices({{2, 2}, {2, 1}}, 0), ElementsAre(0, 0));
}

TEST(DeviceShares, AreAddedWhereMostIsIdle) {
  EXPECT_THAT(share_devices({{4, 0}, {8, 0}}, 5), ElementsAre(1, 4));
  EXPECT_THAT(share_devices({{4, 0}, {8, 0}}, 8), ElementsAre(2, 6));
}

TEST(DeviceShares, EndWhereThereAreNoMore) {
  EXPECT_THAT(share_devices({{4, 1}, {2, 0}}, 100), ElementsAre(4, 2));
  EXPECT_THAT(share_devices({}, 3), ElementsAre());
}

TEST(DeviceTypes, AreNamedByTheirFirstWords) {
  EXPECT_TRUE(is_type_named("h200-sm90-580.159-cu130", "h200"));
  EXPECT_TRUE(is_type_named("h200-sm90-580.159-cu130", "h200-sm90"));
  EXPECT_TRUE(is_type_named("simulated-a", "simulated-a"));
  EXPECT_FALSE(is_type_named("h200-sm90-580.159-cu130", "h20"));
  EXPECT_FALSE(is_type_named("h200-sm90-580.159-cu130", "h100"));
  EXPECT_FALSE(is_type_named("h200-sm90-580.159-cu130", ""));
}

}  // namespace
}  // namespace hone
