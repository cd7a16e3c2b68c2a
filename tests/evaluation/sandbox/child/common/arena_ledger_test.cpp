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
