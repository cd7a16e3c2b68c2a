#include "actors/generator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "messages/names.hpp"
#include "policy/checkpoint.hpp"
#include "tests/support/actor_system.hpp"
#include "tests/support/gpu_lender.hpp"
#include "tests/support/pool_records.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::ElementsAre;

constexpr auto limit = std::chrono::seconds(20);

// Writes its version and the prompt, one draw a step.
class echo final : public writer {
 public:
  void load(const std::filesystem::path& checkpoint, std::uint64_t version) override {
    if (checkpoint.filename() != std::to_string(version))
      throw std::runtime_error("the weights of another version");
    version_ = version;
  }
  void submit(std::uint64_t ticket, const std::string& prompt, std::uint32_t samples) override {
    waiting_.push_back({ticket, prompt, samples});
  }
  std::vector<finished> step() override {
    if (waiting_.empty()) return {};
    const auto one = waiting_.front();
    waiting_.pop_front();
    finished f{one.ticket, {}};
    for (std::uint32_t i = 0; i < one.samples; ++i) {
      completion how;
      how.tokens = {1};
      how.log_probabilities = {-1};
      how.versions = {{version_, 1}};
      f.completions.push_back({"version " + std::to_string(version_) + ", sample " +
                                   std::to_string(i) + " for " + one.prompt,
                               how});
    }
    return {f};
  }
  std::uint64_t version() const override { return version_; }
  std::size_t busy_with() const override { return waiting_.size(); }
  std::size_t room() const override { return waiting_.empty() ? 4 : 0; }
  std::uint64_t tokens_written() const override { return 0; }

 private:
  struct prompted {
    std::uint64_t ticket;
    std::string prompt;
    std::uint32_t samples;
  };
  std::uint64_t version_ = 0;
  std::deque<prompted> waiting_;
};

// The test is the pool and the learner.
class GeneratorActor : public testing::Test {
 protected:
  GeneratorActor() : system_(actor_settings()), me_(system_) {
    options_.run_folder = "run";
    options_.make_writer = [] { return std::make_unique<echo>(); };
    options_.prompts = std::make_shared<const prompt_template>(
        prompt_template::parse("{{task}} on {{device}}\n", "test"));
    start();
  }
  ~GeneratorActor() override { stop(); }
  void start() {
    generator_ = system_.spawn(generator, std::string("generator 0"), options_,
                               std::make_shared<const task_table>(table_of_softmax(the_task())),
                               caf::actor_cast<pool_actor>(caf::actor_cast<caf::actor>(me_)));
  }
  void stop() { caf::anon_send_exit(generator_, caf::exit_reason::kill); }
  void publish(std::uint64_t version) {
    record_builder<schema::PolicyVersion> v;
    v->setVersion(version);
    v->setCheckpoint(checkpoint_name(version));
    me_->send(generator_, weights_atom_v, v.finish());
  }
  void give_draw(std::uint64_t version, std::uint32_t samples, Stage stage = Stage::CONTRASTIVE) {
    record_builder<schema::Draw> draw;
    random_id<draw_id>().store(draw->initId());
    the_task().store(draw->initTaskId());
    draw->setDeviceType(the_device());
    draw->setStage(stage);
    draw->setPolicyVersion(version);
    draw->setSamples(samples);
    const draw_record made = draw.finish();
    me_->receive([&](draw_atom) { return made; },
                 caf::after(limit) >> [] { ADD_FAILURE() << "no draw is asked for"; });
  }
  group_record take_group(bool says_durable = true) {
    group_record group;
    me_->receive(
        [&](submit_atom, const group_record& g) -> caf::result<done_atom> {
          group = g;
          if (!says_durable) return caf::make_error(caf::sec::runtime_error, "not now");
          return done_atom_v;
        },
        caf::after(limit) >> [] { ADD_FAILURE() << "no group comes"; });
    return group;
  }
  static std::vector<std::string> texts(const group_record& group) {
    std::vector<std::string> all;
    for (const auto rollout : group->getRollouts()) all.emplace_back(view(rollout.getText()));
    return all;
  }

  caf::actor_system system_;
  caf::scoped_actor me_;
  generator_options options_;
  generator_actor generator_;
};

TEST_F(GeneratorActor, WritesAGroupForADraw) {
  publish(3);
  give_draw(3, 2);
  const group_record group = take_group();
  EXPECT_THAT(texts(group), ElementsAre("version 3, sample 0 for softmax on cpu-test\n",
                                        "version 3, sample 1 for softmax on cpu-test\n"));
  EXPECT_EQ(view(group->getPrompt()), "softmax on cpu-test\n");
  EXPECT_EQ(group->getRollouts()[0].getVersions()[0].getVersion(), 3U);
  EXPECT_EQ(group->getVariants().size(), 2U) << "what does not parse is a variant as well";
  EXPECT_NE(group->getVariants()[0].getProblem().size(), 0U);
}

TEST_F(GeneratorActor, WritesNothingBeforeItHasWeights) {
  caf::error none;
  me_->request(generator_, limit, status_atom_v)
      .receive([](const actor_status_record& status) { EXPECT_EQ(status->getProcessed(), 0U); },
               [&](const caf::error& e) { none = e; });
  EXPECT_FALSE(none);
  EXPECT_TRUE(me_->mailbox().empty()) << "it has asked for a draw";
}

TEST_F(GeneratorActor, SendsAGroupUntilItIsDurable) {
  publish(0);
  give_draw(0, 1);
  const group_id first(take_group(false)->getId());
  EXPECT_EQ(group_id(take_group()->getId()), first) << "the same one, so that the pool can tell";
}

TEST_F(GeneratorActor, TakesNewWeightsForWhatItWritesNext) {
  publish(0);
  give_draw(0, 1);
  take_group();
  publish(1);
  give_draw(0, 1);
  give_draw(1, 1);
  take_group();
  EXPECT_THAT(texts(take_group()), ElementsAre("version 1, sample 0 for softmax on cpu-test\n"));
}

// Everything that would run on the GPU happens while it is lent.
class careful_echo final : public writer {
 public:
  explicit careful_echo(std::shared_ptr<const lending> lent) : lent_(std::move(lent)) { look(); }
  void load(const std::filesystem::path& checkpoint, std::uint64_t version) override {
    look();
    echo_.load(checkpoint, version);
  }
  void submit(std::uint64_t ticket, const std::string& prompt, std::uint32_t samples) override {
    echo_.submit(ticket, prompt, samples);
  }
  std::vector<finished> step() override {
    look();
    return echo_.step();
  }
  std::uint64_t version() const override { return echo_.version(); }
  std::size_t busy_with() const override { return echo_.busy_with(); }
  std::size_t room() const override { return echo_.room(); }
  std::uint64_t tokens_written() const override { return 0; }

 private:
  void look() const { EXPECT_TRUE(lent_->is_lent); }

  std::shared_ptr<const lending> lent_;
  echo echo_;
};

TEST_F(GeneratorActor, OnASharedGpuWritesInItsTurns) {
  stop();
  const auto lent = std::make_shared<lending>();
  const caf::actor lender = system_.spawn<caf::detached>(gpu_lender, lent);
  options_.gpu = gpu_lent_by(lender);
  options_.make_writer = [lent] { return std::make_unique<careful_echo>(lent); };
  start();
  publish(0);
  for (int i = 0; i < 3; ++i) {
    give_draw(0, 1);
    take_group();
  }
  publish(1);
  give_draw(1, 1, Stage::COMPARISON);
  take_group();
  EXPECT_GE(lent->turns, 5);  // the writer, and one a draw at least
  caf::anon_send_exit(lender, caf::exit_reason::kill);
}

TEST_F(GeneratorActor, AComparedVersionWritesItsOwnDraws) {
  publish(7);
  give_draw(2, 1, Stage::COMPARISON);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 2, sample 0 for softmax on cpu-test\n"));
  give_draw(7, 1, Stage::COMPARISON);
  EXPECT_THAT(texts(take_group()), ElementsAre("version 7, sample 0 for softmax on cpu-test\n"));
}

}  // namespace
}  // namespace hone
