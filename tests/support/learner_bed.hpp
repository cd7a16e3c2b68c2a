#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/learner.hpp"
#include "actors/timeouts.hpp"
#include "policy/training/checkpoint.hpp"
#include "tests/support/actor_test.hpp"
#include "tests/support/gpu_lender.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone::testing_support {

// A group of the corpus with one document, scored ok on this device type.
inline group_record corpus_group(const std::string& code, const std::string& device) {
  group_options options;
  options.origin = schema::RolloutGroup::Origin::CORPUS;
  options.device = device;
  return make_group({code}, options);
}

// The test takes the place of the pool, the only generator and the supervisor. The learner's policy
// is scripted: the learner makes steps without training.
class LearnerActor : public actor_test {
 protected:
  LearnerActor() {
    options_.plan.sft.updates = 0;
    options_.plan.self_supervised.steps = 0;
    options_.plan.contrastive.steps = 2;
    options_.plan.contrastive.groups = 3;
    options_.plan.comparison = {0, 0, 0, 0};
    options_.run_folder = folder_.path();
    options_.has_thread_for_writing = false;
    options_.make_curriculum = [this] {
      return std::make_unique<curriculum>(
          options_.plan, nullptr,
          std::make_shared<const prompt_template>(prompt_template::parse("{{task}}\n", "test")),
          tasks_, 1);
    };
  }
  // Lets the learner that start() starts share its GPU. Its curriculum must be made under a lease.
  std::shared_ptr<lender_state> share_the_gpu() {
    auto lender = std::make_shared<lender_state>();
    options_.gpu = leased_gpu(own(system_.spawn(gpu_lender, lender)));
    options_.make_curriculum = [lender, make = options_.make_curriculum] {
      EXPECT_TRUE(lender->is_leased);
      return make();
    };
    return lender;
  }
  void start() {
    learner_ =
        own(system_.spawn(learner_behavior, options_, caf::actor_cast<pool_actor>(me()), me()));
    tell(learner_, join_atom_v);
    settle();
  }

  struct batch_request {
    Stage stage = Stage::SFT;
    std::uint32_t at_least = 0;
    bool is_even = false;
    std::size_t without = 0;
  };
  // Answers the learner's request for a batch and returns the request.
  batch_request give(const batch_record& batch) {
    batch_request request;
    EXPECT_TRUE(take([&](take_atom, std::uint8_t stage, std::uint32_t at_least, std::uint32_t,
                         bool is_even, const std::vector<std::uint64_t>& without) {
      request = {static_cast<Stage>(stage), at_least, is_even, without.size() / 2};
      return batch;
    })) << "no batch was requested";
    return request;
  }
  struct committed {
    version_record version;
    step_record step;
    bool checkpoint_was_there = false;
  };
  // Takes the committed step and acknowledges it.
  committed take_commit() {
    committed c;
    EXPECT_TRUE(take([&](commit_atom, const version_record& version, const step_record& step) {
      const auto checkpoint = options_.run_folder / std::string(view(version->getCheckpoint()));
      c = {version, step, std::filesystem::exists(checkpoint)};
      return done_atom_v;
    })) << "no step was committed";
    return c;
  }
  std::uint64_t next_weights() {
    std::uint64_t version = ~std::uint64_t{0};
    EXPECT_TRUE(take([&](weights_atom, const version_record& v) { version = v->getVersion(); }))
        << "no weights were published";
    return version;
  }
  void expect_two_steps_and_the_end() {
    take_commit();
    next_weights();
    for (int step = 0; step < 2; ++step) {
      give(judged_batch({make_group({"a", "b"})}));
      take_commit();
      next_weights();
    }
    EXPECT_TRUE(take_commit().version->getComplete());
    next_weights();
    EXPECT_EQ(end(), std::optional<bool>(true));
  }
  // Returns whether the run is complete, or nullopt if the learner has not finished.
  std::optional<bool> end() {
    std::optional<bool> complete;
    take([&](finish_atom, bool c) { complete = c; });
    return complete;
  }
  // Takes a committed version and ends the learner before it can publish it.
  void kill_after_commit() {
    EXPECT_TRUE(take([&](commit_atom, const version_record& version, const step_record&) {
      options_.chain = {version};
      caf::anon_send_exit(learner_, caf::exit_reason::kill);
      return done_atom_v;
    })) << "no step was committed";
  }
  void answer_replay() {
    EXPECT_TRUE(take([](replay_atom, std::uint8_t stage) {
      EXPECT_EQ(static_cast<Stage>(stage), Stage::SFT);
      return std::vector<scored_group_record>();
    })) << "the trained groups were not requested";
  }

  temporary_folder folder_;
  task_table tasks_;
  learner_options options_;
  learner_actor learner_;
};

}  // namespace hone::testing_support
