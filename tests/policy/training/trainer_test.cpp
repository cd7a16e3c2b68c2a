#include "policy/training/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "policy/network/transformer.hpp"
#include "policy/sampling/completion_sampler.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

using testing_support::tiny;

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
  const auto sampler = make_model_sampler(tiny, "cpu", compute_dtype::automatic, o, {});
  sampler->load(checkpoint, 1);
  sampler->submit(asked);
  std::vector<completion_sampler::finished_prompt> done;
  for (int i = 0; i < 100 && done.empty(); ++i) done = sampler->step();
  return done;
}

TEST(Trainer, RefusesToTrainInFloat16) {
  const temporary_folder folder;
  for (const char* file : {"config.json", "tokenizer.json"})
    std::filesystem::copy_file(tiny / file, folder / file);
  nlohmann::json config;
  std::ifstream(folder / "config.json") >> config;
  config["torch_dtype"] = "float16";
  std::ofstream(folder / "config.json") << config;
  trainer::options o;
  EXPECT_NO_THROW(trainer(folder.path(), true, o)) << "a CPU computes it in float32";
  o.dtype = compute_dtype::float16;
  EXPECT_THROW(trainer(folder.path(), true, o), policy_error);
  o.trains = false;
  EXPECT_NO_THROW(trainer(folder.path(), true, o));
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

// Ways to need less memory, which must not change the learned weights.
struct frugal {
  const char* name;
  std::int64_t logits;  // rows held at a time
  std::int64_t micro_batch_tokens;
  recomputation recompute;
};

trainer make_trainer(const frugal& how) {
  trainer::options o;
  o.seed = 3;
  o.max_logits = how.logits * 2048;
  o.micro_batch_tokens = how.micro_batch_tokens;
  o.recompute = how.recompute;
  return trainer(tiny, true, o);
}

class FrugalUpdates : public testing::TestWithParam<frugal> {};

TEST_P(FrugalUpdates, OfSupervisedFineTuningAreTheSame) {
  trainer frugal_one = make_trainer(GetParam());
  trainer other = make_trainer();
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(frugal_one.sft_update(batch_of(frugal_one), 1e-3, 0.5),
                other.sft_update(batch_of(other), 1e-3, 0.5), 1e-5);
  EXPECT_EQ(frugal_one.tokens_trained_on(), other.tokens_trained_on());
}

constexpr std::array<frugal, 4> frugal_ways = {
    {{"FewLogits", 3, 8192, recomputation::logits},
     {"OneTokenAtATime", 1, 1, recomputation::logits},
     {"Recomputation", 100000, 8192, recomputation::logits_and_layers},
     {"All", 2, 1, recomputation::logits_and_layers}}};

INSTANTIATE_TEST_SUITE_P(Ways, FrugalUpdates, testing::ValuesIn(frugal_ways),
                         [](const auto& way) { return std::string(way.param.name); });

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
  trainer_.restart_optimizer();
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
  o.sampling.temperature = 0;
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
  o.sampling.temperature = 0.8;
  o.sampling.top_p = 0.6;
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

TEST_F(PolicyGradient, MeasuresTheDifferenceBetweenTrainerAndSampler) {
  // The sampler's record of the last token is off by 0.25, and that of the one before by 0.5.
  rollout_group_example off = group(2, 0);
  std::size_t lagged = 0;
  for (auto& r : off.rollouts) {
    const std::size_t last = r.log_probabilities.size() - 1;
    r.log_probabilities[last] += 0.25F;
    r.log_probabilities[last - 1] -= 0.5F;
    r.current = 1;
    lagged += last;
  }
  const auto numbers = trainer_.grpo_update(std::vector{off}, 0, {});
  EXPECT_NEAR(numbers.at("sampler_difference"), 0.25, 1e-4) << "of the last tokens";
  EXPECT_NEAR(numbers.at("lagged_difference"), 2 * 0.5 / static_cast<double>(lagged), 1e-4);
  const auto none = trainer_.grpo_update(std::vector{group(2, 0)}, 0, {});
  EXPECT_FALSE(none.contains("sampler_difference"));
  EXPECT_NEAR(none.at("lagged_difference"), 0, 1e-4);
}

// Returns a group whose sampler thought less of the better completion by `offset` in ln p.
rollout_group_example recorded_lower(rollout_group_example group, float offset) {
  for (float& p : group.rollouts.front().log_probabilities) p -= offset;
  return group;
}

TEST_F(PolicyGradient, RelativeToTheTrainerClipsOnlyWhatTheStepItselfChanges) {
  const std::vector<rollout_group_example> lagged = {recorded_lower(group(2, 0), 1)};
  grpo_step_options o;
  EXPECT_GT(trainer_.grpo_update(lagged, 0, o).at("clipped_share"), 0.3);
  o.base = ratio_base::trainer;
  EXPECT_EQ(trainer_.grpo_update(lagged, 0, o).at("clipped_share"), 0);
}

TEST_F(PolicyGradient, RelativeToTheTrainerWeighsTokensByTheirImportanceUpToTheLimit) {
  // The better completion's tokens have an importance of e, the worse one's of 1. The advantages
  // are 1 and -1, and the ratios 1, so the loss is (limited e - 1) / 2 below 0.
  const std::vector<rollout_group_example> lagged = {recorded_lower(group(2, 0), 1)};
  grpo_step_options o;
  o.base = ratio_base::trainer;
  for (const auto& [limit, importance] :
       {std::pair(1e6, std::exp(1.0)), std::pair(2.0, 2.0), std::pair(1.0, 1.0)}) {
    o.importance_limit = limit;
    EXPECT_NEAR(trainer_.grpo_update(lagged, 0, o).at("loss"), -(importance - 1) / 2, 1e-3)
        << limit;
  }
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

class FrugalPolicyGradient : public PolicyGradient, public testing::WithParamInterface<frugal> {};

TEST_P(FrugalPolicyGradient, IsTheSame) {
  trainer frugal_one = make_trainer(GetParam());
  grpo_step_options o;
  o.objective.entropy_coefficient = 0.1;
  o.objective.kl_coefficient = 0.1;
  trainer_.keep_reference();
  frugal_one.keep_reference();
  for (int i = 0; i < 3; ++i) {
    const std::vector<rollout_group_example> groups = {group(2, 0)};
    trainer_.restart_optimizer();  // group() has left moments
    frugal_one.restart_optimizer();
    const auto expected = trainer_.grpo_update(groups, 1e-3, o);
    const auto found = frugal_one.grpo_update(groups, 1e-3, o);
    for (const auto& [name, value] : expected)
      EXPECT_NEAR(found.at(name), value, 1e-4 * std::max(1.0, std::abs(value))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, FrugalPolicyGradient, testing::ValuesIn(frugal_ways),
                         [](const auto& way) { return std::string(way.param.name); });

// The loss is that of two groups at ratios of 1: the mean of minus the advantages. The first group
// has four completions, the second, whose others are left out, two.
TEST_F(PolicyGradient, TakesTheMeanThatIsAskedFor) {
  rollout_group_example first = group(2, 0);
  first.rollouts.push_back(first.rollouts[1]);
  first.rollouts.push_back(first.rollouts[1]);
  const std::vector<rollout_group_example> groups = {first, group(0, 2)};
  const auto good = static_cast<double>(trainer_.codec().encode_answer(good_).size());
  const auto bad = static_cast<double>(trainer_.codec().encode_answer(bad_).size());
  ASSERT_NE(good, bad);
  grpo_step_options o;
  o.advantages.limit = 100;
  o.longest_answer = 50;
  // Advantages: sqrt(3) and three times -1 / sqrt(3); -1 and 1.
  const double high = std::sqrt(3.0);
  const double low = -1 / std::sqrt(3.0);
  const std::map<loss_mean, double> expected = {
      {loss_mean::sequence, ((high + 3 * low) / 4 + (-1.0 + 1.0) / 2) / 2},
      {loss_mean::token, (good * high + 3 * bad * low - good + bad) / (2 * good + 4 * bad)},
      {loss_mean::limit, (good * high + 3 * bad * low - good + bad) / 6 / 50}};
  for (const auto& [mean, gain] : expected) {
    o.mean = mean;
    EXPECT_NEAR(trainer_.grpo_update(groups, 0, o).at("loss"), -gain, 1e-3) << name_of(mean);
  }
}

}  // namespace
}  // namespace hone
