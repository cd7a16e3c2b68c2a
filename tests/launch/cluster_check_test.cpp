#include "launch/commands/cluster_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

node_pool pool_with(const std::vector<std::string>& devices) {
  node_pool pool;
  pool.name = "workers";
  pool.devices = devices;
  return pool;
}

cluster_plan plan_of(const std::vector<node_pool>& pools) {
  cluster_plan plan;
  plan.pools = pools;
  return plan;
}

configuration head_with(const std::vector<std::string>& devices) {
  configuration c;
  c.node.devices = devices;
  return c;
}

TEST(Misfits, AreNoneIfHeadAndNodesMeasure) {
  EXPECT_THAT(find_misfits(plan_of({pool_with({"cuda"})}), head_with({"cpu"})), IsEmpty());
  EXPECT_THAT(find_misfits(plan_of({pool_with({"simulated:a"})}), head_with({})), IsEmpty());
}

TEST(Misfits, AreMadeUpScoresBesideMeasuredOnes) {
  const cluster_plan plan = plan_of({pool_with({"simulated:a"})});
  configuration c = head_with({"cpu"});
  EXPECT_THAT(find_misfits(plan, c),
              ElementsAre(testing::AllOf(HasSubstr("simulated:a of pool workers"),
                                         HasSubstr("cpu of node.devices"))));
  c.node.options.mixes_simulation = true;
  EXPECT_THAT(find_misfits(plan, c), IsEmpty());
  EXPECT_THAT(
      find_misfits(plan_of({pool_with({"simulated:a"}), pool_with({"cuda"})}), head_with({})),
      ElementsAre(HasSubstr("one kind only")));
}

TEST(Misfits, AreRunsInWhichNothingJudgesOrCompiles) {
  node_pool idle = pool_with({});
  idle.compilers = 0;
  configuration c = head_with({});
  c.node.options.compilers = 0;
  EXPECT_THAT(find_misfits(plan_of({idle}), c),
              ElementsAre(HasSubstr("nothing judges"), HasSubstr("nothing compiles")));
}

TEST(Misfits, AreGeneratorsOfARunThatAsksAnEndpoint) {
  node_pool writers = pool_with({"cuda"});
  writers.generators = {"cuda"};
  configuration c = head_with({});
  c.policy.kind = "endpoint";
  EXPECT_THAT(find_misfits(plan_of({writers}), c), ElementsAre(HasSubstr("generators")));
}

}  // namespace
}  // namespace hone
