#include "evaluation/sandbox/child/common/arena_ledger.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace hone {
namespace {

class ArenaLedger : public testing::Test {
 protected:
  ArenaLedger() {
    ledger_.attach(*head_);
    ledger_.reset(4096, 1U << 20U);
  }
  std::unique_ptr<arena_head> head_ = std::make_unique<arena_head>();
  arena_ledger ledger_;
};

TEST_F(ArenaLedger, KeepsGuardBytesBetweenAllocations) {
  const auto a = ledger_.take(10);
  const auto b = ledger_.take(1000);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a % arena_alignment, 0U);
  EXPECT_GE(*b, *a + 10 + guard_bytes);
  EXPECT_EQ(head_->allocation_count, 2U);
  EXPECT_EQ(head_->allocations[0].bytes, 10U);
  EXPECT_EQ(head_->scratch_used, ledger_.end_of_used());
}

TEST_F(ArenaLedger, ReusesFreedMemoryAndRecordsTheLargestSizeInIt) {
  const auto a = ledger_.take(10);
  ledger_.give_back(*a);
  EXPECT_EQ(ledger_.take(100), a);
  EXPECT_EQ(head_->allocations[0].bytes, 100U);
  EXPECT_NE(ledger_.take(100), a);
}

TEST_F(ArenaLedger, OnSeveralStreamsReusesNoFreedMemoryUntilTheNextReset) {
  ledger_.keep_freed();
  const auto a = ledger_.take(64);
  ledger_.give_back(*a);
  EXPECT_NE(ledger_.take(64), a);
  ledger_.reset(4096, 1U << 20U);
  const auto b = ledger_.take(64);
  ledger_.give_back(*b);
  EXPECT_EQ(ledger_.take(64), b);
}

TEST_F(ArenaLedger, IgnoresTheReleaseOfMemoryFromBeforeAReset) {
  const auto a = ledger_.take(64);
  ledger_.reset(4096, 1U << 20U);
  ledger_.give_back(*a);
  // The offset is the same because the region starts anew, not because the block was released.
  EXPECT_EQ(ledger_.take(64), a);
  EXPECT_EQ(head_->allocation_count, 1U);
}

// The old tensor is at the offset of the new one. Releasing it must not free the new one's memory,
// which a third tensor would get.
TEST_F(ArenaLedger, KeepsATensorWhosePredecessorAtTheOffsetIsReleasedLate) {
  const auto outlives_its_run = ledger_.take(64);
  ledger_.reset(4096, 1U << 20U);
  const auto live = ledger_.take(64);
  ASSERT_EQ(live, outlives_its_run);
  ledger_.give_back(*outlives_its_run);
  const auto third = ledger_.take(64);
  EXPECT_NE(third, live) << "two live tensors share memory";
  ledger_.give_back(*live);
  EXPECT_EQ(ledger_.take(64), live) << "all of its holders have been released";
}

TEST_F(ArenaLedger, KeepsATensorWhosePredecessorHadAnotherSizeAndComesFromSeveralRunsBefore) {
  const auto oldest = ledger_.take(10'000);
  ledger_.reset(4096, 1U << 20U);
  ASSERT_EQ(ledger_.take(500), oldest);
  ledger_.reset(4096, 1U << 20U);
  ASSERT_EQ(ledger_.take(64), oldest);
  ledger_.give_back(*oldest);
  ledger_.give_back(*oldest);
  EXPECT_NE(ledger_.take(64), oldest);
  EXPECT_NE(ledger_.take(10'000), oldest);
}

TEST_F(ArenaLedger, ReturnsNothingIfThereIsNoRoom) {
  EXPECT_FALSE(ledger_.take(1U << 20U));
  const std::uint64_t left = ledger_.left();
  EXPECT_TRUE(ledger_.take(left));
  EXPECT_FALSE(ledger_.take(1));
  ledger_.reset(0, 0);
  EXPECT_FALSE(ledger_.has_region());
  EXPECT_FALSE(ledger_.take(1));
}

}  // namespace
}  // namespace hone
