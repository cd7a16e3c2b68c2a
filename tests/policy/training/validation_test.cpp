#include "policy/training/validation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tasks/task_file.hpp"
#include "tests/support/pool_records.hpp"

namespace hone {
namespace {

using namespace testing_support;

task task_of_tier(std::uint32_t tier) {
  task t = load_task(std::string(HONE_SOURCE_DIR) + "/configs/tasks/softmax.toml");
  t.tier = tier;
  t.id = {tier, 0};
  t.name = "tier_" + std::to_string(tier);
  return t;
}

TEST(Validation, CountsAnswersByTierAndCopies) {
  task_table tasks;
  for (const std::uint32_t tier : {1U, 2U}) tasks.add(task_of_tier(tier), task_role::held_out);
  std::vector<record<schema::RolloutGroup>> groups;
  const auto add = [&](const std::string& code, std::uint32_t tier) {
    group_options options;
    options.task = {tier, 0};
    groups.push_back(make_group({code}, options));
  };
  add("a", 1);
  add("b", 1);
  add("c", 2);
  add("d", 2);
  add("a", 2);
  record_builder<schema::TrainingBatch> batch(*judged_batch(groups, Stage::VALIDATION));
  const auto result = [&](unsigned group) { return batch->getGroups()[group].getResults()[0]; };
  result(0).setScore(std::exp(2.0));
  result(1).setOutcome(Outcome::WRONG_RESULT);
  result(2).setScore(1);
  result(3).setOutcome(Outcome::INFRASTRUCTURE);
  result(4).setOutcome(Outcome::COMPILE_ERROR);
  result(4).setIsCopy(true);
  const curriculum::numbers n = describe_validation(*batch.finish(), tasks);
  EXPECT_EQ(n.at("validation_answers"), 4) << "the inconclusive one says nothing";
  EXPECT_EQ(n.at("validation_ok"), 0.5);
  EXPECT_EQ(n.at("validation_tier_1_ok"), 0.5);
  EXPECT_EQ(n.at("validation_tier_2_ok"), 0.5);
  EXPECT_DOUBLE_EQ(n.at("validation_log_speedup"), 1);
  EXPECT_EQ(n.at("validation_copies"), 0.25);
  EXPECT_THAT(validation_text(n),
              testing::HasSubstr("50.0 % of 4 greedy answers are ok, tier 1 50.0 %, tier 2"));
}

}  // namespace
}  // namespace hone
