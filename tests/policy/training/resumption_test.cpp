// Tests that a curriculum that was resumed from a checkpoint trains like one that was not
// interrupted, bit by bit, in every stage.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "policy/training/curriculum.hpp"
#include "tests/support/counted_lessons.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

using testing_support::tiny;

std::string document(int number) {
  return "## Performance Analysis\nVariant " + std::to_string(number) +
         " reads memory in order.\n## Code Implementation\n```python\ndef forward(x: Tensor) -> "
         "Tensor:\n    return torch.relu(x * " +
         std::to_string(number) + ".5)\n```\n";
}

class Resumption : public testing::Test {
 protected:
  Resumption() {
    task t;
    t.id = {4, 2};
    t.name = "relu";
    tasks_.add(std::move(t));
    options_.sft.updates = 6;
    options_.sft.updates_per_step = 2;
    options_.sft.batch = 2;
    options_.self_supervised.steps = 2;
    options_.self_supervised.rate = 3e-4;
    options_.contrastive.rate = 1e-3;
    options_.contrastive.steps = 3;
    options_.contrastive.grpo.objective.kl_coefficient = 0.1;
    options_.contrastive.grpo.minibatches = 2;
  }

  std::unique_ptr<curriculum> make() const {
    trainer::options o;
    o.seed = 3;
    return std::make_unique<curriculum>(
        options_, std::make_unique<trainer>(tiny, true, o),
        std::make_shared<const prompt_template>(prompt_template::parse(
            "{{task}}\n{{#exemplars}}\n{{score}} {{code}}\n{{/exemplars}}\n", "test")),
        tasks_, 1);
  }

  // A group of four completions whose tokens depend on `number`.
  static void fill(schema::ScoredGroup::Builder scored, int number) {
    auto group = scored.initGroup();
    group.setPrompt("relu\n");
    task_id(4, 2).store(group.initDraw().initTaskId());
    auto rollouts = group.initRollouts(4);
    auto results = scored.initResults(4);
    for (unsigned i = 0; i < 4; ++i) {
      variant_id(static_cast<std::uint64_t>(number), i).store(rollouts[i].initVariantId());
      rollouts[i].setText(document(number + static_cast<int>(i)));
      auto tokens = rollouts[i].initTokens(6);
      auto then = rollouts[i].initLogProbabilities(6);
      for (unsigned t = 0; t < 6; ++t) {
        tokens.set(t, (17U * static_cast<unsigned>(number) + 5U * i + t) % 2000U);
        then.set(t, -7.5F);
      }
      results[i].setOutcome(i == 3 ? Outcome::CRASH : Outcome::OK);
      results[i].setScore(i == 3 ? 0 : 1.0 + i);
    }
  }
  static record<schema::TrainingBatch> batch(int number) {
    record_builder<schema::TrainingBatch> b;
    auto groups = b->initGroups(2);
    fill(groups[0], number);
    fill(groups[1], number + 50);
    return b.finish();
  }
  static void admit_corpus(curriculum& c) {
    for (const int number : {3, 60}) {
      record_builder<schema::ScoredGroup> scored;
      fill(scored.root(), number);
      c.admit(*scored.finish());
    }
  }

  // Makes one step of whatever stage it is.
  static void make_step(curriculum& c, int number) {
    if (c.stage() == Stage::SFT) {
      while (c.sft_updates_left_in_step() > 0) c.sft_update();
      c.end_sft_step();
    } else {
      c.learn(*batch(number), number);
    }
    c.advance();
  }
  static std::string weights_of(const std::filesystem::path& checkpoint) {
    std::ifstream in(checkpoint / "model.safetensors", std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
  }

  temporary_folder folder_;
  task_table tasks_;
  curriculum_options options_;
};

TEST_F(Resumption, AStepSaysHowManyTokensItTrainedOn) {
  const auto c = make();
  admit_corpus(*c);
  while (c->sft_updates_left_in_step() > 0) c->sft_update();
  EXPECT_GT(c->end_sft_step().at("tokens"), 0);
  while (c->stage() == Stage::SFT) make_step(*c, 0);
  ASSERT_EQ(c->stage(), Stage::SELF_SUPERVISED);
  const curriculum::numbers learned = c->learn(*batch(1), 1);
  constexpr double completions = 6;  // three of four work, in two groups
  constexpr double each = 7;         // six tokens and the end
  ASSERT_EQ(learned.at("examples"), completions);
  const double passes = static_cast<double>(options_.self_supervised.passes);
  const double prompts = learned.at("tokens") / passes - completions * each;
  EXPECT_GE(prompts, 0);
  EXPECT_EQ(std::fmod(prompts, completions / 2), 0) << "each group's prompt counts three times";
}

TEST_F(Resumption, ACompletionThatTheLengthLimitHasCutIsAFailure) {
  options_.sft.updates = options_.self_supervised.steps = 0;
  const auto learn = [&](bool counts) {
    options_.contrastive.counts_truncated = counts;
    const auto c = make();
    c->advance();
    record_builder<schema::TrainingBatch> cut(*batch(1));
    for (auto scored : cut->getGroups()) scored.getGroup().getRollouts()[2].setTruncated(true);
    return c->learn(*cut.finish(), 1);
  };
  // Scores of 1, 2 and 3, of which the last was cut, and a crash.
  EXPECT_DOUBLE_EQ(learn(true).at("reward"), 3.0 / 4);
  EXPECT_EQ(learn(true).at("masked_samples"), 0);
  EXPECT_DOUBLE_EQ(learn(false).at("reward"), 3.0 / 3);
  EXPECT_EQ(learn(false).at("masked_samples"), 2);
}

TEST_F(Resumption, TrainsLikeARunThatWasNotInterrupted) {
  const auto whole = make();
  admit_corpus(*whole);
  constexpr int steps = 8;  // three of sft, two self-supervised, three contrastive
  whole->take_checkpoint()(folder_ / "0");
  int before_contrastive = -1;
  for (int s = 0; s < steps; ++s) {
    make_step(*whole, s);
    whole->take_checkpoint()(folder_ / std::to_string(s + 1));
    if (whole->stage() == Stage::CONTRASTIVE && whole->step() == 0) before_contrastive = s + 1;
  }
  ASSERT_EQ(before_contrastive, 5);
  EXPECT_EQ(whole->stage(), Stage::COMPARISON);
  for (int from = 0; from < steps; ++from) {
    const auto resumed = make();
    resumed->load(folder_ / std::to_string(from));
    if (resumed->stage() == Stage::CONTRASTIVE)
      resumed->load_reference(folder_ / std::to_string(before_contrastive));
    admit_corpus(*resumed);
    for (int s = from; s < steps; ++s) make_step(*resumed, s);
    const auto end = folder_ / ("resumed from " + std::to_string(from));
    resumed->take_checkpoint()(end);
    EXPECT_EQ(weights_of(end) == weights_of(folder_ / std::to_string(steps)), true)
        << "resumed after " << from << " steps";
  }
}

TEST_F(Resumption, NeedsTheReferencePolicyOfTheStagesStart) {
  options_.sft.updates = 0;
  options_.self_supervised.steps = 0;
  const auto whole = make();
  whole->advance();
  make_step(*whole, 1);
  whole->take_checkpoint()(folder_ / "1");
  make_step(*whole, 2);
  whole->take_checkpoint()(folder_ / "2");
  const auto resumed = make();
  resumed->load(folder_ / "1");
  resumed->load_reference(folder_ / "1");  // not the stage's start
  make_step(*resumed, 2);
  resumed->take_checkpoint()(folder_ / "other");
  EXPECT_TRUE(weights_of(folder_ / "other") != weights_of(folder_ / "2"))
      << "the test would not notice a wrong reference";
}

TEST_F(Resumption, GoesOnWithTheNextPairOfAStream) {
  options_.self_supervised.steps = options_.contrastive.steps = 0;
  const auto make_streaming = [&](std::size_t threads) {
    auto c = make();
    c->read_stream(testing_support::counted_lessons::open,
                   {.threads = threads, .seed = 5, .device_type = "cpu"});
    return c;
  };
  const auto whole = make_streaming(1);
  EXPECT_TRUE(whole->can_update()) << "a stream needs no corpus";
  for (int s = 0; s < 3; ++s) {
    whole->take_checkpoint()(folder_ / std::to_string(s));
    make_step(*whole, s);
  }
  EXPECT_FALSE(whole->can_update()) << "the stream has ended with its stage";
  whole->take_checkpoint()(folder_ / "end");
  for (int from = 0; from < 3; ++from) {
    const auto resumed = make_streaming(2);
    resumed->load(folder_ / std::to_string(from));
    for (int s = from; s < 3; ++s) make_step(*resumed, s);
    const auto again = folder_ / ("from " + std::to_string(from));
    resumed->take_checkpoint()(again);
    EXPECT_TRUE(weights_of(again) == weights_of(folder_ / "end")) << "from step " << from;
  }
}

}  // namespace
}  // namespace hone
