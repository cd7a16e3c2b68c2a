#include "launch/cluster/cluster.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>

#include <functional>

#include "process/unique_fd.hpp"
#include "tests/launch/cluster/launcher_bed.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/refusal.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::bed_kind;
using testing_support::is_alive;
using testing_support::launcher_bed;
using testing_support::read_file;
using testing_support::write_file;

class cluster : public testing::Test {
 protected:
  cluster() {
    plan_.text =
        "config = \"run.toml\"\ndirectory = \"run\"\n"
        "[[pool]]\nname = \"cpus\"\nlauncher = \"local\"\ncount = 2\ndevices = [\"cpu\"]\n"
        "compilers = 2\n";
    plan_.config = bed_.path("run.toml");
    plan_.directory = run_;
    plan_.head.listen = "127.0.0.1:0";
    plan_.pools = {bed_.pool};
    plan_.pools[0].hone.clear();
    plan_.pools[0].count = 2;
    plan_.pools[0].hosts.clear();
    plan_.pools[0].per_host = 1;
    plan_.pools[0].kubernetes.image.clear();
    options_.program = bed_.pool.hone;
    options_.head_limit = std::chrono::seconds(30);
    write_file(plan_.config, "seed = 1\n");
  }
  ~cluster() override {
    if (fs::exists(run_ / "cluster/head.node")) stop_cluster(run_, options_);
  }

  static std::string message_of(const auto& action) {
    return testing_support::refusal_of<std::exception>(action);
  }

  launcher_bed bed_{bed_kind::local};
  fs::path run_ = bed_.path("run");
  cluster_plan plan_;
  cluster_options options_;
};

TEST_F(cluster, StartsTheHeadThenThePoolsAndStopsThemAll) {
  start_cluster(plan_, options_);
  const pid_t head = bed_.process_of("head");
  const pid_t node = bed_.process_of("cpus-1");
  EXPECT_THAT(bed_.note("head", "args"),
              ElementsAre("run", plan_.config.string(), "--dir", run_.string(), "--set",
                          "node.listen=\"127.0.0.1:0\""));
  // The stand-in writes this address; the port of the file is 0.
  EXPECT_THAT(bed_.note("cpus-1", "args"),
              ElementsAre("node", "--join", "127.0.0.1:4242", "--name", "cpus-1", "--devices",
                          "cpu", "--compilers", "2"));
  const cluster_state state = list_cluster(run_);
  EXPECT_EQ(state.head.phase, node_phase::running);
  ASSERT_EQ(state.pools.size(), 1U);
  EXPECT_EQ(state.pools[0].nodes.size(), 2U);
  EXPECT_FALSE(fs::exists(run_ / "cluster/authority")) << "nothing here needs identities";
  stop_cluster(run_, options_);
  EXPECT_FALSE(is_alive(head));
  EXPECT_FALSE(is_alive(node));
  EXPECT_FALSE(fs::exists(run_ / "cluster/cpus"));
  EXPECT_EQ(list_cluster(run_).head.phase, node_phase::ended);
  EXPECT_THAT(read_file(run_ / "logs/head.log"), HasSubstr("head ended by SIGTERM"));
}

TEST_F(cluster, ScalesAPoolByTheRunsFolderAlone) {
  start_cluster(plan_, options_);
  scale_pool(run_, "cpus", 3, options_);
  EXPECT_EQ(list_cluster(run_).pools[0].nodes.size(), 3U);
  scale_pool(run_, "cpus", 1, options_);
  EXPECT_EQ(list_cluster(run_).pools[0].nodes.size(), 1U);
  EXPECT_EQ(message_of([&] { scale_pool(run_, "gpus", 1, options_); }),
            "there is no pool 'gpus', only cpus");
  stop_cluster(run_, options_);
  EXPECT_THAT(message_of([&] { scale_pool(run_, "cpus", 1, options_); }),
              HasSubstr("does not run, so there is nothing to join"));
}

TEST_F(cluster, KeepsTheNumberOfNodesWhenResumed) {
  const auto nodes = [&] { return list_cluster(run_).pools[0].nodes.size(); };
  start_cluster(plan_, options_);
  scale_pool(run_, "cpus", 3, options_);
  stop_cluster(run_, options_);
  options_.resume = true;
  start_cluster(plan_, options_);
  EXPECT_EQ(nodes(), 3U);
  stop_cluster(run_, options_);
  plan_.pools[0].count = 1;
  start_cluster(plan_, options_);
  EXPECT_EQ(nodes(), 1U) << "the cluster file has another number since";
  stop_cluster(run_, options_);
}

TEST_F(cluster, GivesIdentitiesToAHeadThatOthersCanReach) {
  plan_.head.listen = "0.0.0.0:4242";
  plan_.head.advertise = "10.0.0.1:4242";
  plan_.head.set = {"pool.max_groups=8"};
  start_cluster(plan_, options_);
  const fs::path identities = run_ / "cluster/authority/identities";
  EXPECT_THAT(bed_.note("head", "args"),
              ElementsAre("run", plan_.config.string(), "--dir", run_.string(), "--set",
                          "node.listen=\"0.0.0.0:4242\"", "--set",
                          "node.identity=\"" + (identities / "head").string() + "\"", "--set",
                          "pool.max_groups=8"));
  const auto words = bed_.note("cpus-0", "args");
  ASSERT_GE(words.size(), 5U);
  EXPECT_EQ(words[2], "10.0.0.1:4242");
  EXPECT_EQ(words[4], (identities / "cpus").string());
  EXPECT_THAT(bed_.note("cpus-0", "key"), testing::Contains("-----BEGIN PRIVATE KEY-----"));
  EXPECT_EQ(fs::status(run_ / "cluster").permissions(), fs::perms::owner_all);
  stop_cluster(run_, options_);
  options_.resume = true;
  start_cluster(plan_, options_);
  EXPECT_EQ(list_cluster(run_).head.phase, node_phase::running) << "identities are kept";
}

TEST_F(cluster, StopsNodesOfPoolsThatTheFileNoLongerHas) {
  start_cluster(plan_, options_);
  const std::string gone = plan_.pools[0].name;
  ASSERT_EQ(list_cluster(run_).pools[0].nodes[0].phase, node_phase::running);
  const fs::path records = run_ / "cluster" / gone;
  ASSERT_TRUE(fs::exists(records));
  const pid_t head = bed_.process_of("head");
  kill(head, SIGKILL);
  ASSERT_TRUE(testing_support::eventually([&] { return !is_alive(head); }));
  plan_.pools[0].name = "renamed";
  plan_.text.replace(plan_.text.find("\"" + gone + "\""), gone.size() + 2, "\"renamed\"");
  options_.resume = true;
  start_cluster(plan_, options_);
  EXPECT_FALSE(fs::exists(records)) << "its nodes were stopped";
  EXPECT_EQ(list_cluster(run_).pools[0].nodes[0].name, "renamed-0");
}

TEST_F(cluster, ShowsTheLastLinesOfAHeadThatCannotStart) {
  plan_.head.set = {"--end-at-once"};
  EXPECT_EQ(message_of([&] { start_cluster(plan_, options_); }),
            "the head has ended;\n" + (run_ / "logs/head.log").string() +
                " ends with:\nthis is hone head\ncannot work: no devices");
  EXPECT_FALSE(fs::exists(run_ / "cluster/cpus")) << "no node was started";
}

TEST_F(cluster, IsStartedOnceAndGoesOnWhenResumed) {
  start_cluster(plan_, options_);
  const pid_t first = bed_.process_of("head");
  EXPECT_THAT(message_of([&] { start_cluster(plan_, options_); }), HasSubstr("is up already"));
  kill(first, SIGKILL);
  ASSERT_TRUE(testing_support::eventually(
      [&] { return list_cluster(run_).head.phase == node_phase::ended; }));
  options_.resume = true;
  start_cluster(plan_, options_);
  EXPECT_NE(bed_.process_of("head", first), 0);
  EXPECT_EQ(bed_.note("head", "args").back(), "--resume");
}

TEST_F(cluster, StartsNodesAgainThatCouldNotFindTheNewHead) {
  plan_.head.listen = "127.0.0.1:4343";
  start_cluster(plan_, options_);
  const pid_t node = bed_.process_of("cpus-0");
  const pid_t head = bed_.process_of("head");
  kill(head, SIGKILL);
  ASSERT_TRUE(testing_support::eventually(
      [&] { return list_cluster(run_).head.phase == node_phase::ended; }));
  start_cluster(plan_, options_);
  EXPECT_NE(bed_.process_of("head", head), 0);
  EXPECT_EQ(bed_.process_of("cpus-0"), node) << "the address is the same";
  EXPECT_TRUE(is_alive(node));
  stop_cluster(run_, options_);
  start_cluster(plan_, options_);
  const pid_t second = bed_.process_of("cpus-0", node);
  kill(bed_.process_of("head", head), SIGKILL);
  ASSERT_TRUE(testing_support::eventually(
      [&] { return list_cluster(run_).head.phase == node_phase::ended; }));
  plan_.head.listen = "127.0.0.1:0";
  start_cluster(plan_, options_);
  EXPECT_NE(bed_.process_of("cpus-0", second), 0);
  EXPECT_EQ(bed_.note("cpus-0", "args")[2], "127.0.0.1:4242");
}

TEST_F(cluster, IsChangedByOneCommandAtATime) {
  start_cluster(plan_, options_);
  {
    const unique_fd lock(open((run_ / "cluster/lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0) << "a detached process holds the lock";
    EXPECT_THAT(message_of([&] { scale_pool(run_, "cpus", 1, options_); }),
                HasSubstr("another command changes the cluster"));
  }
  scale_pool(run_, "cpus", 1, options_);
}

TEST_F(cluster, StartsTheOtherPoolsIfOneCannotBeStarted) {
  node_pool broken = plan_.pools[0];
  broken.name = "broken";
  broken.hone = "/no/such/hone";
  plan_.pools.insert(plan_.pools.begin(), broken);
  EXPECT_THAT(message_of([&] { start_cluster(plan_, options_); }),
              testing::AllOf(HasSubstr("broken-0: /no/such/hone is not a program"),
                             HasSubstr("the rest of the cluster is up")));
  EXPECT_NE(bed_.process_of("cpus-0"), 0);
}

TEST_F(cluster, IsOnlyChangedOnTheMachineThatStartedIt) {
  start_cluster(plan_, options_);
  const std::string record = read_file(run_ / "cluster/head.node");
  write_file(run_ / "cluster/head.node", record.substr(0, record.find('\n')) + "\nelsewhere\n");
  EXPECT_THAT(message_of([&] { stop_cluster(run_, options_); }),
              HasSubstr("was started on elsewhere; run this command there"));
  write_file(run_ / "cluster/head.node", record);
}

TEST_F(cluster, RefusesAFolderThatNoClusterHas) {
  EXPECT_THAT(message_of([&] { stop_cluster(bed_.path("other")); }),
              HasSubstr("is not the folder of a run that `hone up` started"));
}

TEST_F(cluster, IsPlannedWithoutTouchingAnything) {
  plan_.head.listen = "10.0.0.1:4242";
  const std::string text = plan_cluster(plan_, options_);
  EXPECT_FALSE(fs::exists(run_));
  EXPECT_THAT(text, HasSubstr("# identities of the head and of each pool, in " +
                              (run_ / "cluster/authority").string() + ": head, cpus\n"));
  EXPECT_THAT(text, HasSubstr("--set 'node.listen=\"10.0.0.1:4242\"'"));
  EXPECT_THAT(text, HasSubstr("# pool cpus: 2 nodes, by local\n"));
  fs::remove(plan_.config);
  EXPECT_THAT(message_of([&] { plan_cluster(plan_, options_); }), HasSubstr("no such file"));
}

}  // namespace
}  // namespace hone
