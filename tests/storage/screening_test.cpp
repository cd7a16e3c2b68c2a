// Tests how the pool keeps screenings and full measurements apart.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/names.hpp"
#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;

class Screening : public PoolTest {
 protected:
  Screening() {
    screens_ = true;
    open();
    first_version();
  }

  std::vector<double> scores() {
    std::vector<double> found;
    const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 1});
    if (!batch) return found;
    for (const auto result : (*batch)->getGroups()[0].getResults())
      found.push_back(result.getOutcome() == Outcome::OK ? result.getScore() : -1);
    return found;
  }
};

TEST_F(Screening, MeasuresTheBestOfAGroupInFull) {
  const auto jobs = submit(make_group({"a", "b", "a"}));
  ASSERT_EQ(jobs.size(), 2U);
  for (const auto& job : jobs) {
    EXPECT_TRUE(job->getHeader().getScreened());
    EXPECT_EQ(job->getHeader().getScope(), screening_scope);
  }
  EXPECT_TRUE(finish(*jobs[0], 2.0).empty()) << "the group still waits";
  const auto full = finish(*jobs[1], 3.0);
  ASSERT_EQ(full.size(), 1U);
  EXPECT_EQ(view(full[0]->getPython()), "b");
  EXPECT_FALSE(full[0]->getHeader().getScreened());
  EXPECT_FALSE(full[0]->getHeader().getVerified()) << "it is verified again, with other contents";
  EXPECT_EQ(scores(), (std::vector<double>{2, 3, 2})) << "the group does not wait for it";
}

TEST_F(Screening, MeasuresNothingInFullThatIsNoFasterThanTheBest) {
  const auto full = finish(*submit(make_group({"a"}))[0], 2.0);
  ASSERT_EQ(full.size(), 1U);
  finish(*full[0], 3.0);
  EXPECT_TRUE(finish(*submit(make_group({"b"}))[0], 2.9).empty());
  const auto faster = finish(*submit(make_group({"c"}))[0], 3.1);
  ASSERT_EQ(faster.size(), 1U);
  EXPECT_EQ(view(faster[0]->getPython()), "c");
  group_options of_island;
  of_island.population = 7;
  EXPECT_EQ(finish(*submit(make_group({"d"}, of_island))[0], 1.5).size(), 1U)
      << "its population has none";
}

TEST_F(Screening, ShowsOnlyWhatIsMeasuredInFull) {
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  const auto full = finish(*jobs[1], 30.0);
  EXPECT_FALSE(pool_->best(the_task(), the_device()));
  EXPECT_EQ(score_of("b"), -1);
  finish(*full[0], 3.0);
  ASSERT_TRUE(pool_->best(the_task(), the_device()));
  EXPECT_EQ(pool_->best(the_task(), the_device())->score, 3) << "and not 30";
  EXPECT_EQ(score_of("a"), -1);
  EXPECT_EQ(scores(), (std::vector<double>{2, 30})) << "a group compares screenings alone";
  const auto draw = pool_->draw({.task = the_task(), .device_type = the_device()});
  ASSERT_EQ(draw->getExemplars().size(), 1U);
  EXPECT_EQ(draw->getExemplars()[0].getScore(), 3);
  EXPECT_TRUE(submit(make_group({"b"})).size() == 1U) << "screened again";
  verify();
}

TEST_F(Screening, PaysNothingForWhatAFullEvaluationRefutes) {
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  const auto full = finish(*jobs[1], 30.0);
  finish(*full[0], 0, Outcome::CHEATING);
  EXPECT_EQ(scores(), (std::vector<double>{2, -1}));
  finish_all(submit(make_group({"b"})), 30.0);
  EXPECT_FALSE(pool_->best(the_task(), the_device()));
  verify();
}

TEST_F(Screening, MeasuresAgainWhatCouldNotBeMeasured) {
  const auto full = finish(*submit(make_group({"a"}))[0], 2.0);
  ASSERT_EQ(full.size(), 1U);
  finish(*full[0], 0, Outcome::UNSTABLE);
  int measured = 0;
  for (const auto& job : submit(make_group({"a"})))
    measured += job->getHeader().getScreened() ? 0 : 1;
  EXPECT_EQ(measured, 1) << "the group's best is tried again";
}

TEST_F(Screening, ListsEachVariantOnce) {
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  finish(*finish(*jobs[1], 30.0)[0], 3.0);
  pool_.reset();
  std::map<variant_id, double> listed;
  const pool_inspector inspector(folder_ / "pool");
  inspector.each_known_evaluation(
      [&](const evaluation_key& key, const record<schema::Evaluation>& e) {
        EXPECT_TRUE(listed.emplace(key.variant, e->getScore()).second);
      });
  EXPECT_EQ(listed, (std::map<variant_id, double>{{variant_of("a"), 2}, {variant_of("b"), 3}}));
  const auto counted = inspector.count();
  EXPECT_EQ(counted.evaluations, 2U);
  EXPECT_EQ(counted.evaluated_variants, 2U);
  EXPECT_EQ(counted.waiting_variants, 0U);
}

TEST_F(Screening, IsNotForTheCorpusAndComparisons) {
  group_options corpus;
  corpus.origin = schema::RolloutGroup::Origin::CORPUS;
  EXPECT_FALSE(submit(make_group({"a"}, corpus))[0]->getHeader().getScreened());
  group_options compared;
  compared.origin = schema::RolloutGroup::Origin::COMPARISON;
  compared.stage = schema::Stage::COMPARISON;
  EXPECT_FALSE(submit(make_group({"b"}, compared))[0]->getHeader().getScreened());
}

TEST_F(Screening, OutlivesARestartWithoutTheOption) {
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  screens_ = false;
  open();
  jobs_list sent;
  pool_->collect_overdue(now_, sent);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0]->getHeader().getScreened());
  EXPECT_EQ(finish(*sent[0], 3.0).size(), 1U);
  EXPECT_EQ(scores(), (std::vector<double>{2, 3}));
}

}  // namespace
}  // namespace hone
