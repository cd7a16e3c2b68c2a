#include "policy/training/working_examples.hpp"

#include <gtest/gtest.h>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "messages/record.hpp"
#include "tests/support/policy_folders.hpp"

namespace hone {
namespace {

class WorkingExamples : public testing::Test {
 protected:
  // A completion of a group whose prompt shows the variant 9.
  struct completion {
    std::uint64_t variant = 0;
    std::vector<token_id> tokens;
    Outcome outcome = Outcome::OK;
    bool is_truncated = false;
    bool is_copy = false;
  };

  std::vector<sft_example> examples(const std::vector<std::vector<completion>>& groups) const {
    record_builder<schema::TrainingBatch> batch;
    auto list = batch->initGroups(static_cast<unsigned>(groups.size()));
    for (unsigned g = 0; g < list.size(); ++g) {
      auto group = list[g].initGroup();
      task_id{1, 1}.store(group.initDraw().initTaskId());
      const auto count = static_cast<unsigned>(groups[g].size());
      auto rollouts = group.initRollouts(count);
      auto results = list[g].initResults(count);
      for (unsigned i = 0; i < count; ++i) {
        const completion& one = groups[g][i];
        variant_id{one.variant, one.variant}.store(rollouts[i].initVariantId());
        rollouts[i].setTruncated(one.is_truncated);
        auto tokens = rollouts[i].initTokens(static_cast<unsigned>(one.tokens.size()));
        for (unsigned k = 0; k < tokens.size(); ++k) tokens.set(k, one.tokens[k]);
        results[i].setOutcome(one.outcome);
        results[i].setIsCopy(one.is_copy);
      }
    }
    return working_examples(*batch.finish(), codec_);
  }

  text_codec codec_ = text_codec::load(testing_support::tiny, {});
  token_id end_ = codec_.end_tokens().front();
};

TEST_F(WorkingExamples, AreTheDistinctProgramsThatWork) {
  const auto found = examples({{{1, {5, end_}},
                                {2, {6, end_}, Outcome::WRONG_RESULT},
                                {3, {7}, Outcome::OK, true},
                                {1, {8, end_}}},
                               {{1, {5, end_}}, {4, {9, end_}}}});
  ASSERT_EQ(found.size(), 2U) << "the program 1 once, and 4";
  EXPECT_EQ(found[0].completion, (std::vector<token_id>{5, end_}));
  EXPECT_EQ(found[1].completion, (std::vector<token_id>{9, end_}));
}

TEST_F(WorkingExamples, LeaveOutCopiesOfWhatThePromptShows) {
  EXPECT_TRUE(examples({{{9, {5, end_}, Outcome::OK, false, true}}}).empty());
}

TEST_F(WorkingExamples, EndWhereTheirProgramEnds) {
  const auto found = examples({{{1, {5, 6}}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].completion, (std::vector<token_id>{5, 6, end_}));
}

}  // namespace
}  // namespace hone
