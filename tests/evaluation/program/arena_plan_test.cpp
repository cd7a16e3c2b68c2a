#include "evaluation/program/arena_plan.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/failures.hpp"

namespace hone {
namespace {

using with = output_alias::with;

constexpr std::uint64_t size = 1U << 20U;

// A plan with two sets of two inputs and one parameter, and a head as a process could write it.
class ArenaPlan : public testing::Test {
 protected:
  ArenaPlan() {
    plan_.arrange(0, {{dtype::float32, {10, 10}}, {dtype::boolean, {3}}}, {{dtype::float64, {5}}},
                  2, 4096, size);
    head_->outputs_per_call = 1;
    head_->output_count = 1;
  }
  arena_output& output(std::uint64_t offset, std::vector<std::int64_t> sizes,
                       std::vector<std::int64_t> strides) {
    arena_output& out = head_->outputs[0];
    out.offset = offset;
    out.dtype = static_cast<std::uint32_t>(dtype::float32);
    out.dimensions = static_cast<std::uint32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), out.sizes.begin());
    std::copy(strides.begin(), strides.end(), out.strides.begin());
    return out;
  }
  Outcome problem() const { return outcome_of(plan_.locate(*head_, 0, 0)); }

  arena_plan plan_;
  std::unique_ptr<arena_head> head_ = std::make_unique<arena_head>();
};

TEST_F(ArenaPlan, PutsGuardBytesAroundEveryRegion) {
  std::vector<arena_region> all = plan_.parameters();
  for (std::size_t set = 0; set < 2; ++set)
    all.insert(all.end(), plan_.inputs(set).begin(), plan_.inputs(set).end());
  EXPECT_EQ(all.size(), 5U);
  for (const arena_region& r : all) {
    EXPECT_EQ(r.begin % arena_alignment, 0U);
    EXPECT_GE(r.begin, 4096 + guard_bytes);
    EXPECT_LE(r.end() + guard_bytes, plan_.end());
    for (const arena_region& other : all) {
      if (other.begin > r.begin) {
        EXPECT_GE(other.begin, r.end() + guard_bytes);
      }
    }
  }
  for (const auto& g : plan_.guards()) {
    for (const arena_region& r : all) EXPECT_FALSE(g.range.overlaps(r));
  }
}

TEST_F(ArenaPlan, ThrowsIfInputsDoNotFit) {
  EXPECT_THROW(plan_.arrange(0, {{dtype::float32, {1 << 20}}}, {}, 1, 0, size), std::length_error);
}

TEST_F(ArenaPlan, LocatesAnOutput) {
  output(plan_.end(), {4, 5}, {5, 1});
  const auto located = plan_.locate(*head_, 0, 0);
  ASSERT_TRUE(located);
  EXPECT_EQ(located->extent.bytes, 80U);
  EXPECT_EQ(plan_.output_bytes(*head_, 0), 80U);
}

TEST_F(ArenaPlan, ChecksEveryNumberThatTheProcessWrites) {
  output(plan_.end(), {4, -5}, {5, 1});
  EXPECT_EQ(problem(), Outcome::WRONG_RESULT);
  output(plan_.end(), {1LL << 40, 1LL << 40}, {0, 0});
  EXPECT_EQ(problem(), Outcome::WRONG_RESULT);
  output(plan_.end(), {4}, {1LL << 62});
  EXPECT_EQ(problem(), Outcome::WRONG_RESULT);
  output(plan_.end(), {4}, {1}).dtype = 99;
  EXPECT_EQ(problem(), Outcome::WRONG_RESULT);
  output(plan_.end(), {4}, {1}).dimensions = 200;
  EXPECT_EQ(problem(), Outcome::WRONG_RESULT);
  output(size - 4, {4}, {1});  // reaches beyond the arena
  EXPECT_EQ(plan_.locate(*head_, 0, 0)->extent.begin, not_in_arena);
  output(64, {4}, {1});  // before the region of this session
  EXPECT_EQ(plan_.locate(*head_, 0, 0)->extent.begin, not_in_arena);
  head_->output_count = 0;
  EXPECT_EQ(problem(), Outcome::CRASH);
  head_->outputs_per_call = 1000;
  EXPECT_FALSE(arena_plan::outputs_per_call(*head_));
  head_->allocation_count = 1;
  head_->allocations[0] = {size - 8, 4096};
  EXPECT_FALSE(plan_.scratch_guards(*head_, plan_.end(), size));
}

TEST_F(ArenaPlan, FindsTheMemoryThatAnOutputShares) {
  const std::vector<std::size_t> sets = {1};
  output(plan_.inputs(1)[0].begin + 4, {4}, {1});
  EXPECT_EQ(plan_.aliases(*head_, 0, sets), (std::set<output_alias>{{0, with::input, 0}}));
  output(plan_.inputs(0)[0].begin, {4}, {1});  // another call's input
  EXPECT_EQ(plan_.aliases(*head_, 0, sets), (std::set<output_alias>{{0, with::foreign, 0}}));
  output(plan_.parameters()[0].begin, {2}, {1});
  EXPECT_EQ(plan_.aliases(*head_, 0, sets), (std::set<output_alias>{{0, with::parameter, 0}}));
  output(not_in_arena, {4}, {1});
  EXPECT_EQ(plan_.aliases(*head_, 0, sets), (std::set<output_alias>{{0, with::foreign, 0}}));
  output(plan_.end(), {4}, {1});
  EXPECT_TRUE(plan_.aliases(*head_, 0, sets).empty());
}

}  // namespace
}  // namespace hone
