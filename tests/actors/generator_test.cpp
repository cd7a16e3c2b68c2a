#include "actors/generator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "actors/timeouts.hpp"
#include "messages/names.hpp"
#include "policy/training/checkpoint.hpp"
#include "tests/support/actor_system.hpp"
#include "tests/support/actor_test.hpp"
#include "tests/support/gpu_lender.hpp"
#include "tests/support/pool_records.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::ElementsAre;

// Letters of a prompt that leave room for a whole answer of the echo.
constexpr std::size_t max_prompt = 64;

// A sampler that writes its version and the prompt, and finishes one prompt per step.
class echo final : public completion_sampler {
 public:
  void load(const std::filesystem::path& checkpoint, std::uint64_t version) override {
    if (checkpoint.filename() != std::to_string(version))
      throw std::runtime_error("the weights of another version");
    version_ = version;
  }
  void take(const decoder_weights& /*weights*/, std::uint64_t version) override {
    version_ = version;
  }
  void submit(const prompt& asked) override {
    if (asked.room == answer_room::whole && asked.text.size() > max_prompt)
      throw policy_error("a prompt of " + std::to_string(asked.text.size()) +
                         " letters is too long");
    waiting_.push_back(asked);
  }
  std::vector<finished_prompt> step() override {
    if (waiting_.empty()) return {};
    const auto one = waiting_.front();
    waiting_.pop_front();
    finished_prompt f{one.ticket, {}};
    for (std::uint32_t i = 0; i < one.samples; ++i) {
      completion how;
      how.tokens = {1};
      how.log_probabilities = {-1};
      how.versions = {{version_, 1}};
      f.completions.push_back({"version " + std::to_string(version_) +
                                   (one.is_greedy ? ", greedy sample " : ", sample ") +
                                   std::to_string(i) + " for " + one.text,
                               how});
    }
    return {f};
  }
  std::uint64_t version() const override { return version_; }
  std::size_t unfinished_samples() const override { return waiting_.size(); }
  std::size_t free_slots() const override { return waiting_.empty() ? 4 : 0; }
  std::uint64_t tokens_generated() const override { return 0; }

 private:
  std::uint64_t version_ = 0;
  std::deque<prompt> waiting_;
};

// The test takes the place of the pool and the learner.
class GeneratorActor : public actor_test {
 protected:
  GeneratorActor() {
    options_.run_folder = "run";
    options_.make_sampler = [] { return std::make_unique<echo>(); };
    options_.prompts = std::make_shared<const prompt_template>(
        prompt_template::parse("{{task}} on {{device}}\n", "test"));
  }
  void start() {
    generator_ = own(system_.spawn(generator_behavior, std::string("generator 0"), options_,
                                   std::make_shared<const task_table>(table_of_softmax(the_task())),
                                   caf::actor_cast<pool_actor>(me())));
    settle();
  }
  void publish(std::uint64_t version) {
    record_builder<schema::PolicyVersion> v;
    v->setVersion(version);
    v->setCheckpoint(checkpoint_name(version));
    tell(generator_, weights_atom_v, v.finish());
  }
  void give_draw(std::uint64_t version, std::uint32_t samples, Stage stage = Stage::CONTRASTIVE,
                 schema::Draw::Arm arm = schema::Draw::Arm::SAMPLED) {
    record_builder<schema::Draw> draw;
    random_id<draw_id>().store(draw->initId());
    the_task().store(draw->initTaskId());
    draw->setDeviceType(the_device());
    draw->setStage(stage);
    draw->setPolicyVersion(version);
    draw->setSamples(samples);
    draw->setArm(arm);
    EXPECT_TRUE(take([made = draw.finish()](draw_atom) { return made; }))
        << "no draw was requested";
  }
  // Takes the submitted group and acknowledges or refuses it.
  group_record take_group(bool acknowledges = true) {
    group_record group;
    EXPECT_TRUE(take([&](submit_atom, const group_record& g) -> caf::result<done_atom> {
      group = g;
      if (!acknowledges) return caf::make_error(caf::sec::runtime_error, "not now");
      return done_atom_v;
    })) << "no group was submitted";
    return group;
  }
  static std::vector<std::string> texts(const group_record& group) {
    std::vector<std::string> all;
    for (const auto rollout : group->getRollouts()) all.emplace_back(view(rollout.getText()));
    return all;
  }

  generator_options options_;
  generator_actor generator_;
};

TEST_F(GeneratorActor, TakesTheNewestWeightsThatTheLearnerOffersAndReadsFilesOtherwise) {
  const auto exchange = std::make_shared<weights_exchange>();
  options_.exchange = exchange;
  exchange->put(4, {});
  start();
  publish(3);  // meanwhile the learner has gone on
  give_draw(3, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 4, sample 0 for softmax on cpu-test\n"));
  publish(5);  // the echo throws unless the file is that of version 5
  give_draw(5, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 5, sample 0 for softmax on cpu-test\n"));
}

TEST_F(GeneratorActor, WritesAGroupForADraw) {
  start();
  publish(3);
  give_draw(3, 2);
  const group_record group = take_group();
  EXPECT_THAT(texts(group), ElementsAre("version 3, sample 0 for softmax on cpu-test\n",
                                        "version 3, sample 1 for softmax on cpu-test\n"));
  EXPECT_EQ(view(group->getPrompt()), "softmax on cpu-test\n");
  EXPECT_EQ(group->getRollouts()[0].getVersions()[0].getVersion(), 3U);
  EXPECT_EQ(group->getVariants().size(), 2U) << "documents that do not parse are variants as well";
  EXPECT_NE(group->getVariants()[0].getProblem().size(), 0U);
}

TEST_F(GeneratorActor, LeavesOutTheWorstExemplarsIfAnAnswerWouldNotFit) {
  options_.prompts = std::make_shared<const prompt_template>(prompt_template::parse(
      "{{task}}\n{{#exemplars}}\n{{score}} {{code}}\n{{/exemplars}}\n", "test"));
  start();
  publish(0);
  record_builder<schema::Draw> draw;
  random_id<draw_id>().store(draw->initId());
  the_task().store(draw->initTaskId());
  draw->setDeviceType(the_device());
  draw->setSamples(1);
  auto exemplars = draw->initExemplars(2);
  for (unsigned i = 0; i < 2; ++i) {
    exemplars[i].setScore(1 + i);
    exemplars[i].setPython("program " + std::to_string(i));
  }
  EXPECT_TRUE(take([made = draw.finish()](draw_atom) { return made; }));
  const auto group = take_group();
  const std::string prompt(view(group->getPrompt()));
  EXPECT_LE(prompt.size(), max_prompt);
  EXPECT_THAT(prompt, testing::HasSubstr("program 1"));
  EXPECT_THAT(prompt, testing::Not(testing::HasSubstr("program 0")));
  ASSERT_EQ(group->getDraw().getExemplars().size(), 1U) << "omitted programs are not listed";
  EXPECT_EQ(view(group->getDraw().getExemplars()[0].getPython()), "program 1");
}

TEST_F(GeneratorActor, LeavesOutAnAttemptThatDoesNotFit) {
  options_.prompts = std::make_shared<const prompt_template>(
      prompt_template::parse("{{task}}\n{{#attempt}}\n{{code}}\n{{/attempt}}\n", "test"));
  start();
  publish(0);
  for (const std::size_t letters : {10U, 1000U}) {
    record_builder<schema::Draw> draw;
    random_id<draw_id>().store(draw->initId());
    the_task().store(draw->initTaskId());
    draw->setDeviceType(the_device());
    draw->setSamples(1);
    draw->initAttempt().setPython(std::string(letters, 'p'));
    EXPECT_TRUE(take([made = draw.finish()](draw_atom) { return made; }));
    const auto group = take_group();
    const std::string prompt(view(group->getPrompt()));
    EXPECT_EQ(prompt.find("ppp") != std::string::npos, letters == 10);
    EXPECT_EQ(group->getDraw().hasAttempt(), letters == 10);
    EXPECT_LE(prompt.size(), max_prompt);
  }
}

// On a joined node: the test takes the place of the fetcher as well.
class JoinedGenerator : public GeneratorActor {
 protected:
  JoinedGenerator() {
    options_.fetcher = caf::actor_cast<fetcher_actor>(me());
    options_.learner = caf::actor_cast<learner_actor>(me());
  }
  // Answers the request for a checkpoint with its folder, or refuses it.
  void give_checkpoint(std::uint64_t version, bool is_pinned, bool is_refused = false) {
    EXPECT_TRUE(take([&](fetch_atom, std::uint64_t asked, bool pinned) -> caf::result<std::string> {
      EXPECT_EQ(asked, version);
      EXPECT_EQ(pinned, is_pinned);
      if (is_refused) return caf::make_error(caf::sec::runtime_error, "a later one is wanted");
      return "/cache/" + std::to_string(version);
    })) << "no checkpoint was requested";
  }
};

TEST_F(JoinedGenerator, RegistersWithTheLearnerAndWritesWithCopiesOfCheckpoints) {
  start();
  EXPECT_TRUE(take([](join_atom) {}));
  publish(3);
  EXPECT_FALSE(take([](draw_atom) { return draw_record(); })) << "there are no weights yet";
  give_checkpoint(3, false);
  give_draw(3, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 3, sample 0 for softmax on cpu-test\n"));
}

TEST_F(JoinedGenerator, WritesOnWhileACheckpointIsBeingCopied) {
  start();
  publish(3);
  give_checkpoint(3, false);
  publish(4);
  give_draw(3, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 3, sample 0 for softmax on cpu-test\n"));
  publish(5);
  give_checkpoint(4, false, true);
  give_checkpoint(5, false);
  give_draw(5, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 5, sample 0 for softmax on cpu-test\n"));
}

TEST_F(JoinedGenerator, AsksAgainForACheckpointThatItDidNotGet) {
  start();
  publish(3);
  give_checkpoint(3, false, true);
  advance(timeouts::fetch_again);
  give_checkpoint(3, false);
  give_draw(3, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 3, sample 0 for softmax on cpu-test\n"));
}

TEST_F(JoinedGenerator, ComparesVersionsWhoseCheckpointsItGets) {
  start();
  publish(3);
  give_checkpoint(3, false);
  give_draw(1, 1, Stage::COMPARISON);
  give_checkpoint(1, true);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 1, sample 0 for softmax on cpu-test\n"));
}

TEST_F(GeneratorActor, RequestsNoDrawBeforeItHasWeights) {
  start();
  EXPECT_EQ(ask<actor_status_record>(generator_, status_atom_v)->getProcessed(), 0U);
  EXPECT_FALSE(take([](draw_atom) { return draw_record(); }));
}

TEST_F(GeneratorActor, SubmitsAGroupAgainUntilItIsAcknowledged) {
  start();
  publish(0);
  give_draw(0, 1);
  const group_id first(take_group(false)->getId());
  advance(timeouts::pool_retry);
  EXPECT_EQ(group_id(take_group()->getId()), first) << "the pool recognizes a repetition by its id";
}

TEST_F(GeneratorActor, NewWeightsApplyToTheNextTokens) {
  start();
  publish(0);
  give_draw(0, 1);
  take_group();
  publish(1);
  give_draw(1, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 1, sample 0 for softmax on cpu-test\n"));
}

TEST_F(GeneratorActor, RequestsADrawAgainAfterARefusal) {
  start();
  publish(0);
  EXPECT_TRUE(take([](draw_atom) -> caf::result<draw_record> {
    return caf::make_error(caf::sec::request_timeout);
  }));
  EXPECT_FALSE(take([](draw_atom) { return draw_record(); })) << "not without a pause";
  advance(timeouts::pool_retry);
  give_draw(0, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 0, sample 0 for softmax on cpu-test\n"));
}

TEST_F(GeneratorActor, RequestsADrawAgainWhenThePoolDoesNotReply) {
  start();
  publish(0);
  EXPECT_TRUE(
      take([&](draw_atom) -> caf::result<draw_record> { return caf::delegated<draw_record>(); }));
  advance(timeouts::draw_request);
  advance(timeouts::pool_retry);
  give_draw(0, 1);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 0, sample 0 for softmax on cpu-test\n"));
}

// A sampler that checks that the GPU is leased whenever a real sampler would use it.
class lease_checking_echo final : public completion_sampler {
 public:
  explicit lease_checking_echo(std::shared_ptr<const lender_state> lender)
      : lender_(std::move(lender)) {
    check();
  }
  void load(const std::filesystem::path& checkpoint, std::uint64_t version) override {
    check();
    echo_.load(checkpoint, version);
  }
  void take(const decoder_weights& weights, std::uint64_t version) override {
    echo_.take(weights, version);
  }
  void submit(const prompt& asked) override { echo_.submit(asked); }
  std::vector<finished_prompt> step() override {
    check();
    return echo_.step();
  }
  std::uint64_t version() const override { return echo_.version(); }
  std::size_t unfinished_samples() const override { return echo_.unfinished_samples(); }
  std::size_t free_slots() const override { return echo_.free_slots(); }
  std::uint64_t tokens_generated() const override { return 0; }

 private:
  void check() const { EXPECT_TRUE(lender_->is_leased); }

  std::shared_ptr<const lender_state> lender_;
  echo echo_;
};

TEST_F(GeneratorActor, OnASharedGpuWritesUnderLeases) {
  const auto lender = std::make_shared<lender_state>();
  options_.gpu = leased_gpu(own(system_.spawn(gpu_lender, lender)));
  options_.make_sampler = [lender] { return std::make_unique<lease_checking_echo>(lender); };
  start();
  publish(0);
  for (int i = 0; i < 3; ++i) {
    give_draw(0, 1);
    take_group();
  }
  publish(1);
  give_draw(1, 1, Stage::COMPARISON);
  take_group();
  EXPECT_GE(lender->leases, 5) << "one for the sampler, and at least one per draw";
}

TEST_F(GeneratorActor, AComparedVersionWritesItsOwnDraws) {
  start();
  publish(7);
  give_draw(2, 1, Stage::COMPARISON);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 2, sample 0 for softmax on cpu-test\n"));
  give_draw(7, 1, Stage::COMPARISON);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 7, sample 0 for softmax on cpu-test\n"));
}

TEST_F(GeneratorActor, WritesGreedilyIfTheDrawAsksForIt) {
  start();
  publish(2);
  give_draw(2, 1, Stage::COMPARISON, schema::Draw::Arm::GREEDY);
  EXPECT_THAT(texts(take_group()),
              ElementsAre("version 2, greedy sample 0 for softmax on cpu-test\n"));
}

}  // namespace
}  // namespace hone
