#include "storage/attempts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class Attempts : public PoolTest {
 protected:
  Attempts() {
    turns_ = 3;
    open();
    first_version();
  }
  record<schema::Draw> draw(Stage stage = Stage::CONTRASTIVE) {
    return pool_->draw({the_task(), the_device(), stage});
  }
  // Submits a group of the given turn and closes its jobs with these outcomes, in order.
  void judge(const std::vector<std::string>& codes,
             const std::vector<std::pair<Outcome, double>>& results, std::uint32_t turn = 0,
             const group_options& options = {}) {
    record_builder<schema::RolloutGroup> group(*make_group(codes, options));
    group->getDraw().setTurn(turn);
    const auto jobs = submit(group.finish());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const variant_id id(jobs[i]->getHeader().getVariantId());
      for (std::size_t c = 0; c < codes.size(); ++c) {
        if (variant_of(codes[c]) == id) finish(*jobs[i], results[c].second, results[c].first);
      }
    }
  }
};

TEST_F(Attempts, OfAJudgedGroupOneFailedOrSlowVariantIsAskedToBeMadeBetterOnce) {
  judge({"best", "slow", "failed"},
        {{Outcome::OK, 4}, {Outcome::OK, 1}, {Outcome::WRONG_RESULT, 0}});
  const auto first = draw();
  ASSERT_TRUE(first->hasAttempt());
  EXPECT_EQ(first->getTurn(), 1U);
  const std::string chosen(view(first->getAttempt().getPython()));
  EXPECT_TRUE(chosen == "slow" || chosen == "failed") << chosen;
  EXPECT_EQ(variant_id(first->getAttempt().getVariantId()), variant_of(chosen));
  EXPECT_EQ(view(first->getAttempt().getOutcome()), chosen == "slow" ? "ok" : "wrong_result");
  EXPECT_EQ(first->getAttempt().getScore(), chosen == "slow" ? 1 : 0);
  EXPECT_FALSE(draw()->hasAttempt());
  EXPECT_EQ(draw()->getTurn(), 0U);
}

TEST_F(Attempts, TurnsFollowEachOtherUpToTheirNumber) {
  judge({"a"}, {{Outcome::CRASH, 0}}, 0);
  EXPECT_EQ(draw()->getTurn(), 1U);
  judge({"b"}, {{Outcome::CRASH, 0}}, 1);
  EXPECT_EQ(draw()->getTurn(), 2U);
  judge({"c"}, {{Outcome::CRASH, 0}}, 2);
  EXPECT_EQ(draw()->getTurn(), 0U) << "three writings in a row are the most";
}

TEST_F(Attempts, AreNotWhatSaysNothingOrIsAmongTheBest) {
  judge({"best", "nearly", "unstable"},
        {{Outcome::OK, 4}, {Outcome::OK, 3.9}, {Outcome::UNSTABLE, 0}});
  EXPECT_FALSE(draw()->hasAttempt());
  group_options options;
  options.problem = "does not parse";
  judge({"words"}, {}, 0, options);
  EXPECT_FALSE(draw()->hasAttempt());
  options = {};
  options.origin = schema::RolloutGroup::Origin::CORPUS;
  judge({"document"}, {{Outcome::CRASH, 0}}, 0, options);
  EXPECT_FALSE(draw()->hasAttempt()) << "the policy has not written it";
}

TEST_F(Attempts, AreNotShownInComparisons) {
  judge({"a"}, {{Outcome::CRASH, 0}});
  EXPECT_FALSE(draw(Stage::COMPARISON)->hasAttempt());
  EXPECT_TRUE(draw()->hasAttempt());
}

TEST_F(Attempts, AreNoneWithOneTurn) {
  turns_ = 1;
  open();
  judge({"a"}, {{Outcome::CRASH, 0}});
  EXPECT_FALSE(draw()->hasAttempt());
}

TEST(Profiles, SayHowAProgramRan) {
  record_builder<schema::Evaluation> made;
  made->setOutcome(Outcome::OK);
  made->setScore(2);
  auto measurement = made->initMeasurements(1)[0];
  measurement.setOutcome(Outcome::OK);
  measurement.setScore(2);
  auto timing = measurement.initCases(1)[0];
  timing.setSizes("N=512");
  timing.setCandidateUs(10);
  timing.setReferenceUs(20);
  timing.setBytes(4'000'000);
  auto kernel = timing.initKernels(1)[0];
  kernel.setName("scale");
  kernel.setBlocks(128);
  kernel.setThreads(256);
  kernel.setRegisters(40);
  kernel.setOccupancy(0.75);
  kernel.setSpilledBytes(8);
  const std::string text = describe_profile(*made.finish());
  EXPECT_THAT(text, HasSubstr("N=512: 10 us a call, the reference 20 us, 400 GB/s"));
  EXPECT_THAT(text, HasSubstr("scale: 128 blocks of 256 threads, 40 registers, occupancy 0.75, 8 "
                              "bytes spilled"));
  EXPECT_EQ(describe_profile(*record_builder<schema::Evaluation>().finish()), "");
}

}  // namespace
}  // namespace hone
