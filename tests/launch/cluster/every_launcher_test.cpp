#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "launch/cluster/programs.hpp"
#include "tests/launch/cluster/launcher_bed.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::bed_kind;
using testing_support::eventually;
using testing_support::is_alive;
using testing_support::launcher_bed;

class every_launcher : public testing::TestWithParam<bed_kind> {
 protected:
  void SetUp() override {
    const std::string problem = launcher_bed::problem_of(GetParam());
    if (!problem.empty()) GTEST_SKIP() << problem;
    bed_ = std::make_unique<launcher_bed>(GetParam());
  }

  std::unique_ptr<launcher> make() const { return make_launcher(bed_->pool, bed_->context); }

  static std::vector<std::string> running(launcher& one) {
    std::vector<std::string> names;
    for (const launched_node& node : one.list()) {
      if (node.phase == node_phase::running) names.push_back(node.name);
    }
    return names;
  }

  static bool is_kubernetes() {
    return GetParam() == bed_kind::kubernetes || GetParam() == bed_kind::kubernetes_box;
  }

  // Waits until exactly the nodes 0 to count-1 are listed, and run.
  static bool come_to_run(launcher& one, std::int64_t count) {
    std::vector<std::string> expected;
    for (std::int64_t i = 0; i < count; ++i) expected.push_back("cpus-" + std::to_string(i));
    return eventually(
        [&] { return running(one) == expected && one.list().size() == expected.size(); });
  }

  // Returns what launchers have left in /tmp on hosts that this test's nodes ran on.
  std::vector<std::string> folders_on_hosts() const {
    std::vector<std::string> left;
    for (int i = 0; i < 4; ++i) {
      const auto words = bed_->note("cpus-" + std::to_string(i), "args");
      const auto at = std::find(words.begin(), words.end(), "--identity");
      if (GetParam() != bed_kind::ssh && GetParam() != bed_kind::ssh_hosts) continue;
      if (at == words.end() || at + 1 == words.end()) {
        left.push_back("node without identity");
      } else if (std::filesystem::exists(std::filesystem::path(at[1]).parent_path())) {
        left.push_back(at[1]);
      }
    }
    return left;
  }

  std::unique_ptr<launcher_bed> bed_;
};

TEST_P(every_launcher, ScalesUpAndDownAndLeavesNothingBehind) {
  const auto one = make();
  one->scale(2);
  ASSERT_TRUE(come_to_run(*one, 2));
  std::vector<pid_t> processes = {bed_->process_of("cpus-0"), bed_->process_of("cpus-1")};
  one->scale(4);
  ASSERT_TRUE(come_to_run(*one, 4));
  EXPECT_EQ(bed_->process_of("cpus-0"), processes[0]) << "a running node was started again";
  processes.push_back(bed_->process_of("cpus-2"));
  processes.push_back(bed_->process_of("cpus-3"));
  one->scale(1);
  EXPECT_TRUE(come_to_run(*one, 1));
  EXPECT_TRUE(is_alive(processes[0]));
  for (std::size_t i = 1; i < 4; ++i) EXPECT_FALSE(is_alive(processes[i])) << i;
  one->scale(0);
  EXPECT_TRUE(one->list().empty());
  EXPECT_FALSE(is_alive(processes[0]));
  EXPECT_FALSE(std::filesystem::exists(bed_->context.run / "cluster" / "cpus"));
  EXPECT_THAT(folders_on_hosts(), ElementsAre());
}

TEST_P(every_launcher, ShowsANodeThatWasKilledWithItsLastLines) {
  const auto one = make();
  one->scale(2);
  ASSERT_TRUE(come_to_run(*one, 2));
  const pid_t killed = bed_->process_of("cpus-1");
  ASSERT_GT(killed, 1);
  kill(killed, SIGKILL);
  std::vector<launched_node> nodes;  // Kubernetes starts the node again by itself soon
  ASSERT_TRUE(eventually([&] {
    nodes = one->list();
    return nodes.size() == 2 && nodes[1].phase == node_phase::ended;
  }));
  EXPECT_EQ(nodes[0].phase, node_phase::running);
  EXPECT_EQ(nodes[1].name, "cpus-1");
  EXPECT_THAT(nodes[1].detail, HasSubstr("this is hone cpus-1"));
  one->scale(2);
  EXPECT_TRUE(come_to_run(*one, 2)) << "the node was not started again";
  EXPECT_NE(bed_->process_of("cpus-1", killed), 0);
  one->scale(0);
}

TEST_P(every_launcher, LetsANodeEndByItself) {
  const auto one = make();
  one->scale(1);
  ASSERT_NE(bed_->process_of("cpus-0"), 0);
  one->scale(0);
  const auto log =
      is_kubernetes() ? bed_->path("box/cpus-0.log") : bed_->context.run / "logs/cpus-0.log";
  EXPECT_THAT(testing_support::read_file(log), HasSubstr("cpus-0 ended by SIGTERM"));
}

TEST_P(every_launcher, GoesOnWhereAnotherProcessStopped) {
  make()->scale(3);
  ASSERT_TRUE(come_to_run(*make(), 3));
  const pid_t last = bed_->process_of("cpus-2");
  make()->scale(2);
  EXPECT_FALSE(is_alive(last));
  EXPECT_TRUE(come_to_run(*make(), 2));
  make()->scale(0);
  EXPECT_TRUE(make()->list().empty());
}

TEST_P(every_launcher, HandsOnWordsAndTheIdentityAsTheyAre) {
  const std::vector<std::string> words = {
      "it's",  "a  b", "$HOME", "$(id)", "`id`", "\"q\"", "back\\s", "*",       "a;b&c|d",
      "#hash", "~",    "$(A)",  "!x",    "%d",   "{a,b}", "-o=x y",  "\xc3\xa9"};
  bed_->pool.options = words;
  const auto one = make();
  one->scale(1);
  ASSERT_TRUE(come_to_run(*one, 1));
  auto args = bed_->note("cpus-0", "args");
  ASSERT_GE(args.size(), 6U);
  EXPECT_EQ(args[4].substr(args[4].rfind('/')), is_kubernetes() ? "/mount" : "/identity");
  args.erase(args.begin() + 4);
  std::vector<std::string> expected = {"node",        "--join", "127.0.0.1:4242", "--identity",
                                       "--name",      "cpus-0", "--devices",      "cpu",
                                       "--compilers", "2"};
  expected.insert(expected.end(), words.begin(), words.end());
  EXPECT_EQ(args, expected);
  EXPECT_THAT(bed_->note("cpus-0", "key"), ElementsAre("key of cpus"));
  one->scale(0);
}

TEST_P(every_launcher, StartsNodesWithoutAnIdentity) {
  bed_->context.identity.clear();
  const auto one = make();
  one->scale(1);
  ASSERT_TRUE(come_to_run(*one, 1));
  EXPECT_THAT(bed_->note("cpus-0", "args"),
              ElementsAre("node", "--join", "127.0.0.1:4242", "--name", "cpus-0", "--devices",
                          "cpu", "--compilers", "2"));
  one->scale(0);
}

TEST_P(every_launcher, ShowsWhyANodeCannotStart) {
  bed_->pool.options = {"--end-at-once"};
  const auto one = make();
  one->scale(1);
  ASSERT_TRUE(eventually([&] {
    const auto nodes = one->list();
    return nodes.size() == 1 && nodes[0].phase == node_phase::ended;
  }));
  EXPECT_THAT(one->list()[0].detail, HasSubstr("cannot work: no devices"));
  one->scale(0);
  EXPECT_TRUE(one->list().empty());
}

INSTANTIATE_TEST_SUITE_P(beds, every_launcher,
                         testing::Values(bed_kind::local, bed_kind::ssh, bed_kind::ssh_hosts,
                                         bed_kind::slurm, bed_kind::slurm_box, bed_kind::kubernetes,
                                         bed_kind::kubernetes_box),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
}  // namespace hone
