#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <map>

#include "launch/cluster/detached_process.hpp"
#include "launch/cluster/programs.hpp"
#include "launch/cluster/ssh_scripts.hpp"
#include "tests/launch/cluster/launcher_bed.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/refusal.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::bed_kind;
using testing_support::eventually;
using testing_support::is_alive;
using testing_support::launcher_bed;
using testing_support::read_file;

std::string message_of(const auto& action) {
  return testing_support::refusal_of<std::exception>(action);
}

// Waits until a node has been seen to be in a phase.
bool comes_to(launcher& one, std::size_t node, node_phase phase) {
  return eventually([&] {
    const auto nodes = one.list();
    return nodes.size() > node && nodes[node].phase == phase;
  });
}

TEST(LocalLauncher, KillsANodeThatDoesNotEndAfterTheGrace) {
  launcher_bed bed(bed_kind::local);
  bed.pool.options = {"--ignore-term"};
  bed.context.grace = std::chrono::milliseconds(300);
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(1);
  const pid_t process = bed.process_of("cpus-0");
  one->scale(0);
  EXPECT_FALSE(is_alive(process));
  EXPECT_THAT(read_file(bed.context.run / "logs/cpus-0.log"), HasSubstr("cpus-0 does not end"));
}

TEST(Programs, GetNoVariablesOfTheJobInWhichTheyAreStarted) {
  const std::map<std::string, bool> stays = {{"SLURM_JOB_ID", false},   {"SBATCH_PARTITION", false},
                                             {"SALLOC_ACCOUNT", false}, {"PMI_RANK", false},
                                             {"PMIX_RANK", false},      {"SLURM_CONF", true},
                                             {"KUBECONFIG", true},      {"HONE_TEST_OTHER", true}};
  for (const auto& [name, is_kept] : stays) setenv(name.c_str(), "of a test", 1);
  const std::string printed = run_program({"env"}, "", std::chrono::seconds(10));
  for (const auto& [name, is_kept] : stays) {
    unsetenv(name.c_str());
    EXPECT_EQ(printed.find(name + "=of a test") != std::string::npos, is_kept) << name;
  }
}

TEST(LocalLauncher, NamesAProgramThatIsMissing) {
  launcher_bed bed(bed_kind::local);
  bed.pool.hone = "/no/such/hone";
  const auto one = make_launcher(bed.pool, bed.context);
  EXPECT_EQ(message_of([&] { one->scale(2); }),
            "cpus-0: /no/such/hone is not a program on this machine\n"
            "cpus-1: /no/such/hone is not a program on this machine");
  one->scale(0);
}

TEST(SshLauncher, MakesAtMostEightConnectionsAtATime) {
  launcher_bed bed(bed_kind::ssh);
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(20);
  EXPECT_TRUE(comes_to(*one, 19, node_phase::running));
  one->scale(0);
  EXPECT_FALSE(std::filesystem::exists(bed.notes() / "too_many"));
}

TEST(SshLauncher, RefusesMoreNodesThanTheHostsTake) {
  launcher_bed bed(bed_kind::ssh);
  bed.pool.per_host = 2;
  EXPECT_EQ(message_of([&] { make_launcher(bed.pool, bed.context)->scale(5); }),
            "pool cpus has room for 4 nodes, not for 5");
}

TEST(SshLauncher, EndsTheNodeWhenTheConnectionEnds) {
  for (const auto kind : {bed_kind::ssh, bed_kind::ssh_hosts}) {
    if (!launcher_bed::problem_of(kind).empty()) continue;
    launcher_bed bed(kind);
    const auto one = make_launcher(bed.pool, bed.context);
    one->scale(1);
    const pid_t node = bed.process_of("cpus-0");
    ASSERT_GT(node, 1);
    // "HOST\nFOLDER\nPID ...": the ssh client's process is on the third line.
    std::istringstream record(read_file(bed.context.run / "cluster/cpus/cpus-0.node"));
    std::string host;
    std::string folder;
    pid_t client = 0;
    record >> host >> folder >> client;
    ASSERT_GT(client, 1);
    kill(client, SIGKILL);
    EXPECT_TRUE(eventually([&] { return !is_alive(node); })) << name_of(kind);
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(folder); })) << name_of(kind);
    one->scale(0);
  }
}

TEST(SshLauncher, KillsANodeThatDoesNotEndAfterTheGrace) {
  launcher_bed bed(bed_kind::ssh);
  bed.pool.options = {"--ignore-term"};
  bed.context.grace = std::chrono::seconds(1);
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(1);
  const pid_t process = bed.process_of("cpus-0");
  one->scale(0);
  EXPECT_FALSE(is_alive(process));
  EXPECT_TRUE(one->list().empty());
}

TEST(SshLauncher, ShowsAHostThatCannotBeReachedAndForgetsItsNode) {
  launcher_bed bed(bed_kind::ssh);
  bed.pool.hosts = {"n1", "unreachable"};
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(2);
  ASSERT_TRUE(comes_to(*one, 1, node_phase::ended));
  EXPECT_EQ(one->list()[0].phase, node_phase::running);
  EXPECT_EQ(one->list()[1].detail, "ssh: connect to host unreachable port 22: No route to host");
  one->scale(0);
  EXPECT_TRUE(one->list().empty());
}

TEST(SshLauncher, RunsTheSetupFirstAndSaysIfItFails) {
  launcher_bed bed(bed_kind::ssh);
  bed.pool.setup = "HONE_BED_SETUP='it''s done'; export HONE_BED_SETUP";
  auto one = make_launcher(bed.pool, bed.context);
  one->scale(1);
  EXPECT_THAT(bed.note("cpus-0", "setup"), testing::ElementsAre("setup: its done"));
  one->scale(0);
  bed.pool.setup = "echo no such module; false";
  one = make_launcher(bed.pool, bed.context);
  one->scale(1);
  ASSERT_TRUE(comes_to(*one, 0, node_phase::ended));
  EXPECT_THAT(one->list()[0].detail, HasSubstr("no such module\nhone: the setup of cpus-0 failed"));
  one->scale(0);
}

TEST(SshLauncher, NamesNoKeyOnACommandLine) {
  launcher_bed bed(bed_kind::ssh);
  const auto one = make_launcher(bed.pool, bed.context);
  EXPECT_THAT(one->plan(1), Not(HasSubstr("key of cpus")));
  EXPECT_THAT(one->plan(1), HasSubstr("ControlPath=none n1 sh -s >>"));
}

TEST(SlurmLauncher, RunsTheSetupFirst) {
  launcher_bed bed(bed_kind::slurm);
  bed.pool.setup = "export HONE_BED_SETUP=done";
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(1);
  EXPECT_THAT(bed.note("cpus-0", "setup"), testing::ElementsAre("setup: done"));
  EXPECT_EQ(std::filesystem::status(bed.context.run / "cluster/cpus/cpus-0.sbatch").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  one->scale(0);
}

TEST(SlurmLauncher, UsesEveryMachineOfThePartition) {
  const std::string problem = launcher_bed::problem_of(bed_kind::slurm_box);
  if (!problem.empty()) GTEST_SKIP() << problem;
  launcher_bed bed(bed_kind::slurm_box);
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(4);
  EXPECT_TRUE(comes_to(*one, 3, node_phase::running));
  std::map<std::string, int> jobs;
  for (const launched_node& node : one->list())
    ++jobs[node.where.substr(node.where.rfind(' ') + 1)];
  EXPECT_EQ(jobs, (std::map<std::string, int>{{"box1", 2}, {"box2", 2}}));
  one->scale(0);
}

TEST(KubernetesLauncher, RefusesAStatefulSetOfAnotherRun) {
  launcher_bed bed(bed_kind::kubernetes);
  make_launcher(bed.pool, bed.context)->scale(1);
  launch_context other = bed.context;
  other.run = bed.path("other");
  EXPECT_THAT(
      message_of([&] { make_launcher(bed.pool, other)->scale(1); }),
      HasSubstr("there is a statefulset cpus that belongs to the run " + bed.context.run.string()));
  make_launcher(bed.pool, bed.context)->scale(0);
}

TEST(KubernetesLauncher, RefusesToOverwriteASecretThatIsNotItsOwn) {
  launcher_bed bed(bed_kind::kubernetes);
  const std::string text =
      R"({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret",)"
      R"( "metadata": {"name": "cpus-identity"}, "stringData": {"key.pem": "of somebody"}}]})";
  run_program({"kubectl", "apply", "-f", "-"}, text, std::chrono::seconds(30));
  EXPECT_THAT(message_of([&] { make_launcher(bed.pool, bed.context)->scale(1); }),
              HasSubstr("there is a secret cpus-identity that is not Hone's"));
}

TEST(KubernetesLauncher, GivesAnIdentityThatWasMadeAnewToPodsThatStart) {
  launcher_bed bed(bed_kind::kubernetes);
  const auto one = make_launcher(bed.pool, bed.context);
  one->scale(1);
  EXPECT_THAT(bed.note("cpus-0", "key"), testing::ElementsAre("key of cpus"));
  testing_support::write_file(bed.context.identity / "key.pem", "another key\n");
  one->scale(2);
  EXPECT_THAT(bed.note("cpus-1", "key"), testing::ElementsAre("another key"));
  one->scale(0);
}

TEST(ProcessMark, IsNotRunningOnceTheNumberIsAnotherProcess) {
  const testing_support::temporary_folder folder;
  process_mark mark = start_detached({"sleep", "100"}, folder / "log");
  EXPECT_TRUE(is_running(mark));
  process_mark later = mark;
  ++later.start;
  EXPECT_FALSE(is_running(later));
  later = mark;
  later.boot = "another-boot";
  EXPECT_FALSE(is_running(later));
  stop_processes({later}, std::chrono::seconds(1));
  EXPECT_TRUE(is_running(mark)) << "another process was ended";
  stop_processes({*parse_process_mark(print(mark))}, std::chrono::seconds(10));
  EXPECT_FALSE(is_running(mark));
}

TEST(ShellLine, IsReadBackByAShellAsItWas) {
  const std::vector<std::string> words = {"printf", "%s\\n", "",   "it's", "$HOME", "a b", "\\",
                                          "*",      "`id`",  "\"", "a\nb", "~",     "#"};
  EXPECT_EQ(run_program({"sh", "-c", shell_line(words)}, "", std::chrono::seconds(30)),
            "\nit's\n$HOME\na b\n\\\n*\n`id`\n\"\na\nb\n~\n#\n");
  EXPECT_EQ(shell_line({"A=b", "A=b"}), "'A=b' A=b");
}

TEST(LastLines, AreTenAtMost) {
  const testing_support::temporary_folder folder;
  std::string text;
  for (int i = 1; i <= 12; ++i) text += std::to_string(i) + "\n";
  testing_support::write_file(folder / "log", text);
  EXPECT_EQ(last_lines(folder / "log"), "3\n4\n5\n6\n7\n8\n9\n10\n11\n12");
  EXPECT_EQ(last_lines(folder / "none"), "");
  testing_support::write_file(folder / "log", "one");
  EXPECT_EQ(last_lines(folder / "log"), "one");
}

}  // namespace
}  // namespace hone
