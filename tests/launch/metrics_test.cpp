#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <chrono>

#include "launch/metrics/metrics_server.hpp"
#include "network/identity.hpp"
#include "tests/support/http_exchange.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct actor_counts {
  std::string room = "compiler";
  std::string device_type{};
  std::uint64_t started_us = 1;
  std::uint64_t processed = 0;
  double busy_seconds = 0;
  std::uint32_t queued = 0;
  double tokens = 0;
};

// Has telemetry report an actor of this node.
void report_actor(node_snapshot& snapshot, const std::string& name, const actor_counts& counts) {
  record_builder<schema::ActorStatus> status;
  status->setName(name);
  status->setRoom(counts.room);
  status->setDeviceType(counts.device_type);
  status->setStartedUs(counts.started_us);
  status->setProcessed(counts.processed);
  status->setBusySeconds(counts.busy_seconds);
  status->setQueued(counts.queued);
  auto number = status->initNumbers(1)[0];
  number.setName("tokens");
  number.setValue(counts.tokens);
  snapshot.actors[name] = status.finish();
  snapshot.heard[name] = {};
}

struct run_facts {
  std::string stage = "contrastive";
  double ok_samples = 0;
  std::size_t tasks = 0;
  std::string task_name = "task";
};

run_status_record status_of_run(const run_facts& facts) {
  record_builder<schema::RunStatus> run;
  run->setStage(facts.stage);
  run->setVersion(12);
  run->setStep(3);
  run->setLag(1.5);
  run->setWaitingGroups(2);
  auto outcome = run->initOutcomes(1)[0];
  outcome.setName("ok");
  outcome.setValue(facts.ok_samples);
  auto tasks = run->initTasks(static_cast<unsigned>(2 * facts.tasks));
  for (unsigned i = 0; i < tasks.size(); ++i) {
    const std::string number = facts.tasks > 1 ? std::to_string(i / 2) : "";
    tasks[i].setName(facts.task_name + number);
    tasks[i].setDeviceType(i % 2 == 0 ? "cpu" : "h200");
    tasks[i].setVariants(5);
    tasks[i].setBest(2.5);
  }
  return run.finish();
}

std::string exposition(const node_snapshot& snapshot, const metric_totals& totals,
                       const metric_facts& facts = {}) {
  return prometheus::TextSerializer().Serialize(
      make_metric_families(snapshot, totals, facts, {.cpu_seconds = 1.5}, 1000));
}

std::string exposition(const node_snapshot& snapshot) {
  metric_totals totals;
  totals.take(snapshot);
  return exposition(snapshot, totals);
}

TEST(MetricFamilies, HaveTheRunTheActorsAndTheProcess) {
  node_snapshot snapshot;
  report_actor(snapshot, "compiler node 0 0", {.processed = 7, .busy_seconds = 2.5});
  report_actor(snapshot, "compiler node 0 1", {.processed = 3});
  report_actor(snapshot, "benchmarker node 0 cpu:1",
               {.room = "benchmarker", .device_type = "cpu", .processed = 4});
  report_actor(snapshot, "queue verify", {.room = "queue", .queued = 9});
  snapshot.restarts["compiler node 0 1"] = 2;
  snapshot.run = status_of_run({.ok_samples = 40, .tasks = 1});
  snapshot.last_report_ms["gpus-1"] = 2500;
  metric_totals totals;
  totals.take(snapshot);
  const std::string text =
      exposition(snapshot, totals, {.version = "1.2", .run = "/runs/a", .seed = 5, .max_lag = 4});
  for (const char* line : {
           R"(hone_build_info{version="1.2",schema="0",judge="0"} 1)",
           R"(hone_run_info{run="/runs/a",seed="5"} 1)",
           R"(hone_run_stage_info{stage="contrastive"} 1)",
           R"(hone_run_step 3)",
           R"(hone_policy_version 12)",
           R"(hone_policy_lag_steps 1.5)",
           R"(hone_policy_max_lag_steps 4)",
           R"(hone_groups{state="waiting"} 2)",
           R"(hone_groups_dropped_total{device_type="h200"} 0)",
           R"(hone_samples_total{stage="contrastive",outcome="ok"} 40)",
           R"(hone_samples_total{stage="contrastive",outcome="infrastructure"} 0)",
           R"(hone_actors{room="compiler"} 2)",
           R"(hone_work_processed_total{room="compiler"} 10)",
           R"(hone_work_processed_total{room="benchmarker",device_type="cpu"} 4)",
           R"(hone_busy_seconds_total{room="compiler"} 2.5)",
           R"(hone_actor_restarts_total{room="compiler"} 2)",
           R"(hone_queue_items{queue="verify"} 9)",
           R"(hone_best_speedup_ratio{task="task",device_type="cpu"} 2.5)",
           R"(hone_ok_variants{task="task",device_type="h200"} 5)",
           R"(hone_node_last_seen_timestamp_seconds{node="gpus-1"} 2.5)",
           R"(hone_telemetry_timestamp_seconds 1)",
           R"(process_cpu_seconds_total 1.5)",
           R"(# TYPE hone_work_processed_total counter)",
           R"(# TYPE hone_actors gauge)",
       })
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
}

TEST(MetricFamilies, LeaveOutJoinedNodes) {
  node_snapshot snapshot;
  report_actor(snapshot, "compiler node 0 0", {.processed = 7});
  report_actor(snapshot, "compiler gpus-1 0", {.processed = 100});
  snapshot.heard.erase("compiler gpus-1 0");
  EXPECT_THAT(exposition(snapshot), HasSubstr("hone_work_processed_total{room=\"compiler\"} 7\n"));
}

TEST(MetricFamilies, CountersGoOnWhenActorsRestart) {
  node_snapshot snapshot;
  metric_totals totals;
  const auto next = [&](const actor_counts& counts) {
    report_actor(snapshot, "generator 0", counts);
    totals.take(snapshot);
    return exposition(snapshot, totals);
  };
  next({.room = "generator", .started_us = 1, .processed = 5, .busy_seconds = 2, .tokens = 70});
  snapshot.restarts["generator 0"] = 1;
  EXPECT_THAT(next({.room = "generator", .started_us = 2, .processed = 1, .tokens = 9}),
              AllOf(HasSubstr("hone_work_processed_total{room=\"generator\"} 6\n"),
                    HasSubstr("hone_busy_seconds_total{room=\"generator\"} 2\n"),
                    HasSubstr("hone_generated_tokens_total 79\n"),
                    HasSubstr("hone_actor_restarts_total{room=\"generator\"} 1\n")));
  // A node that has joined its run again has a new telemetry actor and new workers.
  snapshot = {};
  EXPECT_THAT(next({.room = "generator", .started_us = 3, .processed = 2}),
              AllOf(HasSubstr("hone_work_processed_total{room=\"generator\"} 8\n"),
                    HasSubstr("hone_actor_restarts_total{room=\"generator\"} 1\n")));
}

TEST(MetricFamilies, KeepTheSamplesOfEarlierStages) {
  node_snapshot snapshot;
  metric_totals totals;
  snapshot.run = status_of_run({.stage = "self_supervised", .ok_samples = 40});
  totals.take(snapshot);
  snapshot.run = status_of_run({.stage = "contrastive", .ok_samples = 8});
  totals.take(snapshot);
  EXPECT_THAT(exposition(snapshot, totals),
              AllOf(HasSubstr("hone_samples_total{stage=\"self_supervised\",outcome=\"ok\"} 40\n"),
                    HasSubstr("hone_samples_total{stage=\"contrastive\",outcome=\"ok\"} 8\n")));
}

TEST(MetricFamilies, TheSamplesOfAServerAreOfTheStageService) {
  node_snapshot snapshot;
  snapshot.run = status_of_run({.stage = "", .ok_samples = 8});
  EXPECT_THAT(exposition(snapshot),
              AllOf(HasSubstr("hone_samples_total{stage=\"service\",outcome=\"ok\"} 8\n"),
                    Not(HasSubstr("hone_run_step"))));
}

TEST(MetricFamilies, EscapeHostileLabels) {
  node_snapshot snapshot;
  snapshot.run = status_of_run({.tasks = 1, .task_name = "a\"b\\c\nd\x1b[0m\xff}"});
  EXPECT_THAT(exposition(snapshot),
              HasSubstr(R"({task="a\"b\\c\nd?[0m?}",device_type="cpu"} 2.5)"));
}

TEST(MetricFamilies, HaveNoSeriesTwice) {
  node_snapshot snapshot;
  record_builder<schema::RunStatus> run;
  auto tasks = run->initTasks(2);
  tasks[0].setName("a\x01");
  tasks[0].setBest(2);
  tasks[1].setName("a\x02");  // becomes the same label value
  tasks[1].setBest(3);
  snapshot.run = run.finish();
  const std::string text = exposition(snapshot);
  EXPECT_THAT(text, HasSubstr("hone_best_speedup_ratio{task=\"a?\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("hone_best_speedup_ratio{task=\"a?\"} 2\n")));
}

TEST(MetricFamilies, HaveNoSeriesPerTaskIfThereAreTooMany) {
  node_snapshot snapshot;
  snapshot.run = status_of_run({.tasks = max_metric_tasks + 1});
  EXPECT_THAT(exposition(snapshot),
              AllOf(Not(HasSubstr("hone_best_speedup_ratio")), HasSubstr("hone_run_step")));
}

TEST(MetricsServer, AnswersAScrapeOf250TasksWithinTenMilliseconds) {
  metrics_server server({"127.0.0.1", 0}, {});
  node_snapshot snapshot;
  for (int i = 0; i < 64; ++i)
    report_actor(snapshot, "compiler node 0 " + std::to_string(i), {.processed = 7});
  snapshot.run = status_of_run({.ok_samples = 1, .tasks = 250});
  server.show(snapshot);
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 10; ++i) {  // other tests run at the same time
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(server.text(), HasSubstr("task=\"task249\",device_type=\"h200\"} 2.5\n"));
    best = std::min(best, std::chrono::steady_clock::now() - begin);
  }
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(std::chrono::duration<double>(best).count(), 0.010);
#endif
}

TEST(MetricsServer, ServesMetricsAndHealthAlone) {
  metrics_server server({"127.0.0.1", 0}, {.version = "1"});
  const std::uint16_t port = server.address().port;
  const auto before = fetch(port, "GET", "/metrics");
  EXPECT_EQ(before.status, 200);
  EXPECT_THAT(before.head, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_THAT(before.body, AllOf(HasSubstr("hone_build_info{version=\"1\""),
                                 HasSubstr("process_resident_memory_bytes "),
                                 Not(HasSubstr("hone_telemetry_timestamp_seconds"))));
  node_snapshot snapshot;
  report_actor(snapshot, "compiler node 0 0", {.processed = 7});
  server.show(snapshot);
  EXPECT_THAT(fetch(port, "GET", "/metrics?debug").body,
              HasSubstr("hone_work_processed_total{room=\"compiler\"} 7\n"));
  EXPECT_EQ(fetch(port, "GET", "/healthz").body, "ok\n");
  EXPECT_EQ(fetch(port, "GET", "/").status, 404);
  EXPECT_EQ(fetch(port, "GET", "/metrics/").status, 404);
  const auto refused = fetch(port, "POST", "/metrics", "{}");
  EXPECT_EQ(refused.status, 405);
  EXPECT_THAT(refused.head, HasSubstr("Allow: GET"));
}

TEST(MetricsServer, KnowsTheProcess) {
  const metrics_server server({"127.0.0.1", 0}, {});
  const std::string text = server.text();
  const auto value = [&](const std::string& name) {
    return std::stod(text.substr(text.find("\n" + name + " ") + name.size() + 2));
  };
  const double now_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value("process_open_fds"), 3) << "the standard streams and the listener";
  EXPECT_GT(value("process_max_fds"), value("process_open_fds"));
  EXPECT_GT(value("process_cpu_seconds_total"), 0);
  EXPECT_LE(value("process_start_time_seconds"), now_s + 1);
  EXPECT_GT(value("process_start_time_seconds"), now_s - 3600);
}

TEST(MetricsServer, IsOffByDefaultAndNamesItsKeyIfItCannotListen) {
  std::string logged;
  const auto log = [&](const std::string& line) { logged += line; };
  EXPECT_EQ(serve_metrics("node.metrics", "", {}, log), nullptr);
  EXPECT_EQ(logged, "");
  const auto server = serve_metrics("node.metrics", "127.0.0.1:0", {}, log);
  const std::string address = to_string(server->address());
  EXPECT_EQ(logged, "metrics at http://" + address + "/metrics");
  try {
    serve_metrics("node.metrics", address, {}, log);
    FAIL() << "two servers listen on " << address;
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("node.metrics: "), HasSubstr(address)));
  }
}

}  // namespace
}  // namespace hone
