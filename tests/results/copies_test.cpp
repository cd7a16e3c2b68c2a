#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "results/catalogue.hpp"
#include "results/compact_groups.hpp"
#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;

class CopiesOfShownVariants : public PoolTest {};

TEST_F(CopiesOfShownVariants, AreFoundByTextAndByCompiledProgram) {
  first_version();
  const auto finish_as = [&](const record<schema::CompileJob>& job, std::uint64_t program) {
    record_builder<schema::Evaluation> result(*make_result(*job, 2.0));
    program_id{1, program}.store(result->initProgramId());
    jobs_list more;
    pool_->record_evaluation(result.finish(), now_, more);
  };
  finish_as(submit(make_group({"shown"}))[0], 1);
  group_options options;
  options.exemplars = {variant_of("shown")};
  record_builder<schema::RolloutGroup> later(
      *make_group({"new", "shown", "renamed", "renamed", "failed"}, options));
  later->setFinishedMs(1);
  const auto group = later.finish();
  const std::map<std::string, std::uint64_t> programs = {{"new", 2}, {"shown", 1}, {"renamed", 1}};
  for (const auto& job : submit(group)) {
    const std::string code(view(job->getPython()));
    if (code == "failed") {
      finish(*job, 0, Outcome::COMPILE_ERROR);
    } else {
      finish_as(job, programs.at(code));
    }
  }
  const std::vector<bool> expected = {false, true, true, true, false};
  const auto batch = pool_->take({Stage::CONTRASTIVE, 2, 2});
  ASSERT_TRUE(batch);
  ASSERT_EQ((*batch)->getGroups().size(), 2U);
  std::vector<bool> taken;
  for (const auto result : (*batch)->getGroups()[1].getResults())
    taken.push_back(result.getIsCopy());
  EXPECT_EQ(taken, expected);
  pool_->commit();

  const pool_inspector pool(folder_ / "pool");
  const compact_groups groups = read_compact_groups(pool);
  std::vector<std::vector<bool>> marks;
  for (const compact_group& one : groups.groups) {
    marks.emplace_back();
    for (const auto& rollout : groups.rollouts_of(one))
      marks.back().push_back(rollout.is_copy != 0);
  }
  EXPECT_THAT(marks, testing::Contains(expected));
  std::set<variant_id> copies;
  for (const catalogue::row& row : read_catalogue(pool, groups).rows) {
    if (row.is_copy) copies.insert(row.variant);
  }
  EXPECT_EQ(copies, (std::set<variant_id>{variant_of("renamed")}))
      << "the shown variant was written first without a prompt that shows it";
}

}  // namespace
}  // namespace hone
