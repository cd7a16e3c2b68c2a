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
  for (const auto& found :
       {find_misfits(plan_of({pool_with({"cuda"})}), head_with({"cpu"}), true),
        find_misfits(plan_of({pool_with({"simulated:a"})}), head_with({}), true)}) {
    EXPECT_THAT(found.problems, IsEmpty());
    EXPECT_THAT(found.notes, IsEmpty());
  }
}

TEST(Misfits, AreMadeUpScoresBesideMeasuredOnes) {
  const cluster_plan plan = plan_of({pool_with({"simulated:a"})});
  configuration c = head_with({"cpu"});
  EXPECT_THAT(find_misfits(plan, c, true).problems,
              ElementsAre(testing::AllOf(HasSubstr("simulated:a of pool workers"),
                                         HasSubstr("cpu of node.devices"))));
  c.node.options.mixes_simulation = true;
  EXPECT_THAT(find_misfits(plan, c, true).problems, IsEmpty());
  cluster_plan both = plan_of({pool_with({"simulated:a"}), pool_with({"cuda"})});
  EXPECT_THAT(find_misfits(both, head_with({}), true).problems,
              ElementsAre(HasSubstr("one kind only")));
  both.pools[1].count = 0;
  EXPECT_THAT(find_misfits(both, head_with({}), true).problems, IsEmpty());
}

TEST(Misfits, NoteThatNothingJudgesOrCompiles) {
  node_pool idle = pool_with({});
  idle.compilers = 0;
  configuration c = head_with({});
  c.node.options.compilers = 0;
  const cluster_misfits found = find_misfits(plan_of({idle}), c, true);
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("a device"), HasSubstr("a compiler")));
}

TEST(Misfits, AreGeneratorsOfARunThatAsksAnEndpoint) {
  node_pool writers = pool_with({"cuda"});
  writers.generators = {"cuda"};
  configuration c = head_with({});
  c.policy.kind = "endpoint";
  EXPECT_THAT(find_misfits(plan_of({writers}), c, true).problems,
              ElementsAre(HasSubstr("generators")));
}

TEST(ClusterCheck, TheHeadNeedsItsGpuWhereItStarts) {
  configuration c = head_with({"cpu"});
  c.policy.kind = "model";
  c.policy.device = "cuda";
  const auto plan = plan_of({pool_with({"cpu"})});
  EXPECT_THAT(find_misfits(plan, c, true).problems, IsEmpty());
  EXPECT_THAT(find_misfits(plan, c, false).problems,
              ElementsAre(HasSubstr("write set = ['policy.device=\"cpu\"'] in [head]")));
  c.policy.device = "cpu";
  EXPECT_THAT(find_misfits(plan, c, false).problems, IsEmpty());
  EXPECT_THAT(find_misfits(plan, head_with({"cuda:1"}), false).problems,
              ElementsAre(HasSubstr("write set = ['node.devices=[]'")));
}

}  // namespace
}  // namespace hone
