#include "policy/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "policy/completion_sampler.hpp"
#include "policy/transformer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

const std::filesystem::path tiny = HONE_SOURCE_DIR "/configs/policies/tiny";

trainer make_trainer(std::uint64_t seed = 3) {
  trainer::options o;
  o.seed = seed;
  return trainer(tiny, true, o);
}

std::vector<token_id> words(const trainer& t, const std::string& text) {
  return t.codec().encode_prompt(text);
}

std::vector<sft_example> batch_of(const trainer& t) {
  std::vector<sft_example> batch;
  for (const char* text : {"x = torch.relu(x)\n", "return x * 2.0\n"}) {
    batch.push_back({words(t, "# softmax on cpu\n"), t.codec().encode_answer(text)});
  }
  return batch;
}

// Returns what a sampler with the weights of a checkpoint makes of a prompt.
std::vector<completion_sampler::finished_prompt> sample_from(
    const std::filesystem::path& checkpoint, const generation_options& o,
    const completion_sampler::prompt& asked) {
  const auto sampler = make_model_sampler(tiny, "cpu", o, {});
  sampler->load(checkpoint, 1);
  sampler->submit(asked);
  std::vector<completion_sampler::finished_prompt> done;
  for (int i = 0; i < 100 && done.empty(); ++i) done = sampler->step();
  return done;
}

TEST(SupervisedUpdates, StartAtTheLossOfAUniformDistribution) {
  trainer t = make_trainer();
  // Small initial weights give a nearly uniform distribution over the vocabulary of 2048 tokens.
  EXPECT_NEAR(t.sft_update(batch_of(t), 0, 0), std::log(2048.0), 0.5);
}

TEST(SupervisedUpdates, ReduceTheLossOfTheirBatch) {
  trainer t = make_trainer();
  const auto batch = batch_of(t);
  const double before = t.sft_update(batch, 3e-3, 0);
  for (int i = 0; i < 30; ++i) t.sft_update(batch, 3e-3, 0);
  EXPECT_LT(t.sft_update(batch, 0, 0), before / 10);
}

TEST(SupervisedUpdates, AreEqualForEqualSeeds) {
  trainer a = make_trainer();
  trainer b = make_trainer();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(a.sft_update(batch_of(a), 1e-3, 1), b.sft_update(batch_of(b), 1e-3, 1));
}

TEST(SupervisedUpdates, IgnorePromptTokensOfWeightZero) {
  trainer a = make_trainer();
  trainer b = make_trainer();
  auto batch = batch_of(a);
  const double without = a.sft_update(batch, 0, 0);
  for (auto& example : batch) std::reverse(example.prompt.begin(), example.prompt.end());
  EXPECT_NE(b.sft_update(batch, 0, 1), without);
}

class PolicyGradient : public testing::Test {
 protected:
  // Returns a group of one prompt and two completions with these rewards.
  rollout_group_example group(double first, double second) {
    rollout_group_example g;
    g.prompt = words(trainer_, "# softmax on cpu\n");
    for (const auto& [text, reward] : {std::pair(good_, first), std::pair(bad_, second)}) {
      rollout_group_example::rollout r;
      r.tokens = trainer_.codec().encode_answer(text);
      r.log_probabilities = log_probabilities(g.prompt, r.tokens);
      r.reward = reward;
      g.rollouts.push_back(r);
    }
    return g;
  }
  std::vector<float> log_probabilities(const std::vector<token_id>& prompt,
                                       const std::vector<token_id>& completion) {
    std::vector<float> all;
    for (std::size_t i = 0; i < completion.size(); ++i) {
      auto shown = prompt;
      shown.insert(shown.end(), completion.begin(),
                   completion.begin() + static_cast<std::ptrdiff_t>(i));
      all.push_back(static_cast<float>(
          -trainer_.sft_update(std::vector<sft_example>{{shown, {completion[i]}}}, 0, 0)));
    }
    return all;
  }
  double likelihood(const std::string& text) {
    return -trainer_.sft_update(std::vector<sft_example>{{words(trainer_, "# softmax on cpu\n"),
                                                          trainer_.codec().encode_answer(text)}},
                                0, 0);
  }
  trainer trainer_ = make_trainer();
  const std::string good_ = "x = torch.relu(x)\n";
  const std::string bad_ = "return x * 2.0\n";
};

TEST_F(PolicyGradient, RaisesTheLikelihoodOfTheHigherRewardAndLowersTheOther) {
  const auto g = group(3, 1);
  const double good = likelihood(good_);
  const double bad = likelihood(bad_);
  trainer_.restart_optimiser();
  const auto numbers = trainer_.grpo_update(std::vector{g}, 1e-3, {});
  EXPECT_GT(likelihood(good_), good);
  EXPECT_LT(likelihood(bad_), bad);
  EXPECT_EQ(numbers.at("groups_used"), 1);
  EXPECT_EQ(numbers.at("distinct_completions"), 2);
  EXPECT_EQ(numbers.at("clipped_share"), 0)
      << "the first update starts from the policy that sampled";
}

TEST_F(PolicyGradient, EqualRewardsChangeNothing) {
  const auto g = group(2, 2);
  const double good = likelihood(good_);
  const auto numbers = trainer_.grpo_update(std::vector{g}, 1e-3, {});
  EXPECT_EQ(numbers.at("groups_used"), 0);
  EXPECT_EQ(likelihood(good_), good);
}

TEST_F(PolicyGradient, AGroupOfOneIsNotUsed) {
  auto g = group(3, 1);
  g.rollouts[1].counts = false;
  EXPECT_EQ(trainer_.grpo_update(std::vector{g}, 1e-3, {}).at("groups_used"), 0);
}

TEST_F(PolicyGradient, AnUpdateWithoutAFiniteGradientIsSkippedAndCounted) {
  auto g = group(3, 1);
  const double good = likelihood(good_);
  EXPECT_EQ(trainer_.skipped_updates(), 0U);
  g.rollouts[0].reward = std::numeric_limits<double>::quiet_NaN();
  trainer_.grpo_update(std::vector{g}, 1e-3, {});
  EXPECT_EQ(trainer_.skipped_updates(), 1U);
  EXPECT_EQ(likelihood(good_), good);
}

TEST_F(PolicyGradient, ACompletionThatHasBecomeMuchMoreLikelyDoesNotOverflow) {
  auto g = group(3, 1);
  // The losing completion was sampled at e^-300 a token, so its ratios would be infinite.
  for (float& p : g.rollouts[1].log_probabilities) p = -300;
  const auto numbers = trainer_.grpo_update(std::vector{g}, 1e-3, {});
  EXPECT_EQ(trainer_.skipped_updates(), 0U);
  EXPECT_TRUE(std::isfinite(numbers.at("loss")));
}

TEST(Checkpoints, ResumedTrainingEqualsUninterruptedTraining) {
  const temporary_folder folder;
  trainer a = make_trainer();
  const auto batch = batch_of(a);
  for (int i = 0; i < 5; ++i) a.sft_update(batch, 1e-3, 0);
  a.take_checkpoint({{{"step", 5}}, {{"note", "five"}}})(folder / "5");
  trainer b = make_trainer(99);
  const training_progress progress = b.load(folder / "5");
  EXPECT_EQ(progress.numbers.at("step"), 5);
  EXPECT_EQ(progress.texts.at("note"), "five");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(a.sft_update(batch, 1e-3, 0), b.sft_update(batch, 1e-3, 0))
        << "the checkpoint holds all weights and moments";
}

TEST(Checkpoints, LoadIntoAWriter) {
  const temporary_folder folder;
  trainer t = make_trainer();
  const auto batch = batch_of(t);
  for (int i = 0; i < 60; ++i) t.sft_update(batch, 3e-3, 0);
  t.take_checkpoint({})(folder / "1");
  generation_options o;
  o.temperature = 0;
  o.max_new_tokens = 20;
  const auto done = sample_from(folder / "1", o, {7, "# softmax on cpu\n", 1, answer_room::whole});
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].ticket, 7U);
  EXPECT_THAT(done[0].completions[0].text,
              testing::AnyOf("x = torch.relu(x)\n", "return x * 2.0\n"));
}

TEST(SamplerAndTrainer, AgreeOnTheDistributionThatTokensAreSampledFrom) {
  const temporary_folder folder;
  trainer t = make_trainer();
  const auto batch = batch_of(t);
  for (int i = 0; i < 10; ++i) t.sft_update(batch, 3e-3, 0);
  t.take_checkpoint({})(folder / "1");
  generation_options o;
  o.temperature = 0.8;
  o.top_p = 0.6;
  o.max_new_tokens = 12;
  const auto done = sample_from(folder / "1", o, {1, "# softmax on cpu\n", 8, answer_room::whole});
  ASSERT_EQ(done.size(), 1U);
  rollout_group_example group;
  group.prompt = words(t, "# softmax on cpu\n");
  double reward = 0;
  for (const auto& sample : done[0].completions)
    group.rollouts.push_back({sample.how.tokens, sample.how.log_probabilities, reward++});
  grpo_step_options same;
  same.objective.clip = 1e-3;
  same.sampling = {0.8, 0.6};
  EXPECT_EQ(t.grpo_update(std::vector{group}, 0, same).at("clipped_share"), 0);
  grpo_step_options other = same;
  other.sampling = {0.8, 1};
  EXPECT_GT(t.grpo_update(std::vector{group}, 0, other).at("clipped_share"), 0.5);
}

TEST(Checkpoints, DamagedFilesAreRefused) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const temporary_folder folder;
    make_trainer().take_checkpoint({})(folder / "1");
    std::filesystem::resize_file(folder / "1" / file, 1000);
    trainer t = make_trainer();
    try {
      t.load(folder / "1");
      FAIL() << file << " was read";
    } catch (const policy_error& e) {
      EXPECT_THAT(std::string(e.what()), testing::HasSubstr("1"));
    }
  }
}

// The log-probabilities that a sampler has recorded are made higher by `offset`.
rollout_group_example recorded_higher(rollout_group_example group, float offset,
                                      std::size_t current) {
  for (auto& r : group.rollouts) {
    for (float& p : r.log_probabilities) p += offset;
    r.current = current;
  }
  return group;
}

TEST_F(PolicyGradient, MeasuresTheDifferenceBetweenTrainerAndSampler) {
  const auto one_token = recorded_higher(group(2, 0), 0.25F, 1);
  const auto numbers = trainer_.grpo_update(std::vector{one_token}, 0, {});
  EXPECT_NEAR(numbers.at("sampler_difference"), 0.25, 1e-4) << "of the last tokens";
  EXPECT_NEAR(numbers.at("lagged_difference"), 0.25, 1e-4) << "of the others";
  const auto none = trainer_.grpo_update(std::vector{recorded_higher(group(2, 0), 0, 0)}, 0, {});
  EXPECT_FALSE(none.contains("sampler_difference"));
  EXPECT_NEAR(none.at("lagged_difference"), 0, 1e-4);
}

TEST_F(PolicyGradient, RelativeToTheTrainerClipsOnlyWhatTheStepItselfChanges) {
  // The sampler's records are far off, so that ratios to them are clipped.
  const auto lagged = recorded_higher(group(2, 0), -1.0F, 0);
  grpo_step_options to_sampler;
  grpo_step_options to_trainer;
  to_trainer.base = ratio_base::trainer;
  EXPECT_GT(trainer_.grpo_update(std::vector{lagged}, 0, to_sampler).at("clipped_share"), 0.9);
  EXPECT_EQ(trainer_.grpo_update(std::vector{lagged}, 0, to_trainer).at("clipped_share"), 0);
  // The gain is weighed by exp(1), limited to 2 by default and to 1 here.
  to_trainer.importance_limit = 1;
  const double unweighed = trainer_.grpo_update(std::vector{group(2, 0)}, 0, to_trainer).at("loss");
  const double weighed = trainer_.grpo_update(std::vector{lagged}, 0, to_trainer).at("loss");
  EXPECT_NEAR(weighed, unweighed, 1e-4);
}

TEST_F(PolicyGradient, WithSeveralUpdatesTheRatioIsRelativeToTheWeightsBeforeTheFirst) {
  grpo_step_options o;
  o.base = ratio_base::trainer;
  o.minibatches = 2;
  const std::vector<rollout_group_example> groups = {group(2, 0)};
  EXPECT_EQ(trainer_.grpo_update(groups, 0, o).at("clipped_share"), 0);
  EXPECT_GT(trainer_.grpo_update(groups, 1e-2, o).at("clipped_share"), 0)
      << "the second update finds the first one's change";
}

class MeanOfTheObjective : public PolicyGradient, public testing::WithParamInterface<loss_mean> {};

TEST_P(MeanOfTheObjective, LearnsTheBetterCompletion) {
  grpo_step_options o;
  o.mean = GetParam();
  o.longest_answer = 32;
  const double good = likelihood(good_);
  const double bad = likelihood(bad_);
  for (int i = 0; i < 5; ++i) trainer_.grpo_update(std::vector{group(2, 0)}, 3e-3, o);
  EXPECT_GT(likelihood(good_) - good, likelihood(bad_) - bad);
}

INSTANTIATE_TEST_SUITE_P(All, MeanOfTheObjective,
                         testing::Values(loss_mean::sequence, loss_mean::token, loss_mean::limit),
                         [](const auto& mean) { return std::string(name_of(mean.param)); });

}  // namespace
}  // namespace hone
