// The life of a cluster with each launcher and the real program: up, scaled up and down while it
// runs, a node killed, down with a report, and nothing left behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/launch/cluster/launcher_bed.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;
using testing::HasSubstr;

class WholeCluster : public small_run_test, public testing::WithParamInterface<bed_kind> {
 protected:
  void SetUp() override {
    const std::string problem = launcher_bed::problem_of(GetParam());
    if (!problem.empty()) GTEST_SKIP() << problem;
    bed_ = std::make_unique<launcher_bed>(GetParam());
    write_file(folder_ / "cluster.toml", cluster_file());
  }
  void TearDown() override {
    if (bed_ && fs::exists(run_folder() / "cluster" / "head.node")) hone({"down", run()});
  }

  std::string cluster_file() const {
    std::string text = "config = \"small.toml\"\ndirectory = \"run\"\n[head]\nlisten = \"" +
                       bed_->head_host() +
                       ":0\"\nset = [\"node.devices=[]\", \"node.compilers=0\", "
                       "\"contrastive.steps=1000000\", \"pool.acknowledgments=acknowledged\"]\n"
                       "[[pool]]\nname = \"cpus\"\ncount = 2\ndevices = [\"simulated:a\"]\n"
                       "compilers = 1\nhone = \"" +
                       hone_program() + "\"\n";
    text += "launcher = \"" + std::string(name_of(bed_->pool.launcher)) + "\"\n";
    if (bed_->pool.launcher == launcher_kind::ssh)
      text += "hosts = [\"n1\", \"n2\"]\nper_host = 2\n";
    if (bed_->pool.launcher == launcher_kind::kubernetes) text += "image = \"hone:1\"\n";
    return text;
  }

  std::string run() const { return run_folder().string(); }

  // Runs a command where the head is.
  outcome_of_program hone(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), hone_program());
    program p(bed_->at_head(arguments), {folder_.path()});
    const auto code = p.wait(std::chrono::seconds(100));
    if (!code) throw std::runtime_error("no end: " + p.out() + p.err());
    return {*code, p.out(), p.err()};
  }

  // Returns the processes of a node of this run, or of all of it, with the empty name.
  std::vector<pid_t> processes_of(const std::string& node) const {
    const std::string join = read_file(run_folder() / "cluster" / "join");
    std::vector<pid_t> found;
    for (const auto& [pid, facts] : all_processes()) {
      const std::string words = read_file("/proc/" + std::to_string(pid) + "/cmdline");
      const std::string name = node.empty() ? node : std::string("--name\0", 7) + node + '\0';
      if (facts.state != 'Z' && words.starts_with(hone_program()) &&
          words.find(join.substr(0, join.find('\n'))) != std::string::npos &&
          words.find(name) != std::string::npos)
        found.push_back(pid);
    }
    return found;
  }

  // Waits until the head has so many nodes of the pool at work.
  bool comes_to_work(std::size_t count) const {
    return eventually(
        [&] {
          const std::string status = hone({"status", "--dir", run(), "--all"}).out;
          std::size_t there = 0;
          constexpr int max_nodes = 4;
          for (int i = 0; i <= max_nodes; ++i)
            there += status.find("verifier cpus-" + std::to_string(i) + " ") != std::string::npos;
          return there == count;
        },
        std::chrono::seconds(60));
  }

  void scale(int count) const {
    const auto scaled = hone({"scale", run(), "cpus=" + std::to_string(count)});
    EXPECT_EQ(scaled.code, 0) << scaled.out << scaled.err;
    EXPECT_TRUE(comes_to_work(static_cast<std::size_t>(count)))
        << hone({"status", "--dir", run()}).out;
    EXPECT_TRUE(wait_for_versions(versions() + 2)) << "no step with " << count << " nodes";
  }

  std::unique_ptr<launcher_bed> bed_;
};

TEST_P(WholeCluster, RunsToAReportWhileItIsScaledAndItsNodesDie) {
  const auto up = hone({"up", (folder_ / "cluster.toml").string()});
  ASSERT_EQ(up.code, 0) << up.out << up.err << read_file(run_folder() / "logs" / "head.log");
  ASSERT_TRUE(comes_to_work(2)) << hone({"status", "--dir", run()}).out;
  scale(4);
  const auto killed = processes_of("cpus-1");
  ASSERT_EQ(killed.size(), 1U);
  kill(killed.front(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_alive(killed.front()); }));
  // Kubernetes starts it again by itself.
  if (bed_->pool.launcher != launcher_kind::kubernetes) {
    const auto scaled = hone({"scale", run(), "cpus=4"});
    EXPECT_EQ(scaled.code, 0) << scaled.out << scaled.err;
  }
  ASSERT_TRUE(eventually([&] { return processes_of("cpus-1").size() == 1; }));
  EXPECT_TRUE(comes_to_work(4)) << hone({"status", "--dir", run()}).out;
  scale(1);
  const auto down = hone({"down", run()});
  EXPECT_EQ(down.code, 0) << down.out << down.err;
  const auto report = hone({"report", run()});
  EXPECT_THAT(report.out, HasSubstr("Simulated devices"));
  EXPECT_THAT(report.out, HasSubstr("hone up " + run() + " --resume"));
  EXPECT_FALSE(fs::exists(run_folder() / "cluster" / "cpus"));
  EXPECT_TRUE(processes_of("").empty());
  expect_nothing_lost();

  if (bed_->pool.launcher != launcher_kind::local) return;
  // The run's folder alone is enough to go on, as the report says.
  EXPECT_NE(hone({"up", run()}).code, 0) << "without --resume";
  const std::size_t before = versions();
  const auto again = hone({"up", run(), "--resume"});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_TRUE(wait_for_versions(before + 2));
  EXPECT_EQ(hone({"down", run()}).code, 0);
}

INSTANTIATE_TEST_SUITE_P(beds, WholeCluster,
                         testing::Values(bed_kind::local, bed_kind::ssh_hosts, bed_kind::slurm_box,
                                         bed_kind::kubernetes_box),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
}  // namespace hone
