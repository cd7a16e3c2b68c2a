#include "storage/retention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;

// Returns a group with a prompt, an exemplar's program, and tokens.
record<schema::RolloutGroup> full_group(const std::string& code, std::uint64_t version = 0) {
  group_options options;
  options.version = version;
  options.exemplars = {variant_of("shown")};
  record_builder<schema::RolloutGroup> group(*make_group({code}, options));
  group->setPrompt("a prompt");
  group->getDraw().getExemplars()[0].setScore(3);
  group->getDraw().getExemplars()[0].setPython("a program");
  auto rollout = group->getRollouts()[0];
  rollout.initTokens(2);
  rollout.initLogProbabilities(2);
  return group.finish();
}

class Retention : public PoolTest {
 protected:
  record<schema::RolloutGroup> stored(const group_id& id) {
    pool_.reset();
    const auto found = pool_inspector(folder_ / "pool").group(id);
    open();
    return found.value();
  }
  // Submits a group, scores it, and commits a step that trains on it.
  group_id train_on(const std::string& code, std::uint64_t version) {
    const auto group = full_group(code, version - 1);
    finish_all(submit(group), 2.0);
    const group_id id(group->getId());
    pool_->commit_step(make_version(version, version - 1, static_cast<std::uint32_t>(version)),
                       make_step(version, version - 1, {id}));
    return id;
  }
};

TEST_F(Retention, StoresAllOfAGroupButItsVariants) {
  first_version();
  record_builder<schema::RolloutGroup> sent(*full_group("a"));
  sent->getDraw().setComparedAt(7);
  sent->getDraw().setTurn(1);
  sent->getDraw().initAttempt().setMessage("why");
  const auto group = sent.finish();
  submit(group);
  sent->initVariants(0);
  EXPECT_EQ(copy_record<schema::RolloutGroup>(*stored(group_id(group->getId()))).bytes(),
            copy_record<schema::RolloutGroup>(sent.root()).bytes());
}

TEST_F(Retention, KeepsEverythingUnlessItIsBounded) {
  first_version();
  const group_id first = train_on("a", 1);
  for (std::uint64_t v = 2; v <= 6; ++v) train_on(std::to_string(v), v);
  const auto group = stored(first);
  EXPECT_EQ(group->getRollouts()[0].getTokens().size(), 2U);
  EXPECT_EQ(view(group->getRollouts()[0].getText()), "a");
}

TEST_F(Retention, RemovesTokensAndTextsAfterTheirNumbersOfSteps) {
  retention_ = {.tokens = 2, .texts = 3};
  open();
  first_version();
  const group_id first = train_on("a", 1);
  train_on("b", 2);
  EXPECT_EQ(stored(first)->getRollouts()[0].getTokens().size(), 2U);
  train_on("c", 3);
  auto group = stored(first);
  EXPECT_EQ(group->getRollouts()[0].getTokens().size(), 0U);
  EXPECT_EQ(group->getRollouts()[0].getLogProbabilities().size(), 0U);
  EXPECT_TRUE(group->getTokensRemoved());
  EXPECT_EQ(view(group->getRollouts()[0].getText()), "a") << "texts are kept for three steps";
  EXPECT_EQ(view(group->getPrompt()), "a prompt");
  train_on("d", 4);
  group = stored(first);
  EXPECT_EQ(view(group->getRollouts()[0].getText()), "");
  EXPECT_EQ(view(group->getPrompt()), "");
  const auto exemplar = group->getDraw().getExemplars()[0];
  EXPECT_EQ(view(exemplar.getPython()), "");
  EXPECT_EQ(exemplar.getScore(), 3) << "what was shown stays known";
  EXPECT_EQ(variant_id(exemplar.getVariantId()), variant_of("shown"));
  EXPECT_EQ(variant_id(group->getRollouts()[0].getVariantId()), variant_of("a"));
  EXPECT_EQ(group->getRollouts()[0].getVersions().size(), 1U);
  EXPECT_TRUE(group->getTokensRemoved());
}

TEST_F(Retention, KeepsTheCorpusWhole) {
  retention_ = {.tokens = 1, .texts = 1};
  open();
  first_version();
  group_options options;
  options.origin = schema::RolloutGroup::Origin::CORPUS;
  const auto corpus = make_group({"document"}, options);
  finish_all(submit(corpus), 2.0);
  const group_id id(corpus->getId());
  pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {id}));
  for (std::uint64_t v = 2; v <= 4; ++v) train_on(std::to_string(v), v);
  EXPECT_EQ(view(stored(id)->getRollouts()[0].getText()), "document");
}

TEST_F(Retention, RemovesTheContentsOfDroppedGroups) {
  retention_ = {.tokens = 5, .texts = 5};
  open();
  first_version();
  const auto old = full_group("old");
  finish_all(submit(old), 2.0);
  for (std::uint64_t v = 1; v <= 3; ++v)
    pool_->commit_step(make_version(v, v - 1, static_cast<std::uint32_t>(v)),
                       make_step(v, v - 1, {}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  pool_->commit();
  const auto group = stored(group_id(old->getId()));
  EXPECT_EQ(group->getRollouts()[0].getTokens().size(), 0U);
  EXPECT_EQ(view(group->getRollouts()[0].getText()), "");
}

TEST_F(Retention, ABranchCannotTrainOnGroupsWithoutTokens) {
  retention_ = {.tokens = 1, .texts = 0};
  open();
  first_version();
  train_on("a", 1);
  train_on("b", 2);
  pool_->choose_branch(0);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U) << "only the last group has its tokens";
}

}  // namespace
}  // namespace hone
