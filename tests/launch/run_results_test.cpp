// Tests of the results of a run, through the program: its report, its pool and its variants.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/support/json_lines.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

class RunResults : public small_run_test {};

TEST_F(RunResults, EndsInAReport) {
  const auto ended = run();
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("softmax"));
  const json report = json::parse(read_file(run_folder() / "report.json"));
  EXPECT_EQ(report["tasks"].size(), 4U);  // two tasks on two types of device
  EXPECT_TRUE(report.contains("comparison"));
  ASSERT_TRUE(report.contains("busy"));
  for (const char* room : {"generator", "compiler", "verifier", "benchmarker", "learner"})
    EXPECT_TRUE(report["busy"].contains(room)) << room;
  const json counted = json::parse(run_hone({"pool", "stats", "--pool", pool(), "--json"}).out);
  EXPECT_LE(report["judged"], counted["evaluations"]);
  EXPECT_GT(report["judged"], 0);
  // The report also counts the measurements of the comparison.
  EXPECT_GT(report["measurements"], counted["measurements"]);
  for (const char* kept :
       {"config.toml", "metrics.jsonl", "trace.json", "report.txt", "pool", "checkpoints"})
    EXPECT_TRUE(std::filesystem::exists(run_folder() / kept)) << kept;
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0);
  EXPECT_THAT(run_hone({"pool", "stats", "--pool", pool()}).out,
              HasSubstr(" jobs given up when the run ended"));
}

TEST_F(RunResults, SaysThatALimitEndedTheContrastiveStage) {
  ASSERT_EQ(run({"--set", "contrastive.steps=4000", "--set", "contrastive.minutes=0.001"}).code, 0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  const json& stage = report["contrastive"];
  EXPECT_EQ(stage["planned_steps"], 4000);
  EXPECT_GE(stage["steps"], 1);
  EXPECT_LT(stage["steps"], 4000);
  EXPECT_THAT(read_file(run_folder() / "report.txt"),
              HasSubstr(std::to_string(stage["steps"].get<int>()) +
                        " of 4000 steps: contrastive.minutes ended the stage"));
}

TEST_F(RunResults, ValidatesOnHeldOutTasksWhileItTrains) {
  ASSERT_EQ(run({"--set", "tasks.names=[\"softmax\"]", "--set", "tasks.held_out=[\"layer_norm\"]",
                 "--set", "validation.every_s=0.02", "--set", "contrastive.steps=40"})
                .code,
            0);
  const auto report = nlohmann::json::parse(read_file(run_folder() / "report.json"));
  ASSERT_FALSE(report["validations"].empty());
  for (const auto& one : report["validations"])
    EXPECT_EQ(one["answers"], 2) << "a greedy answer on each type of device";
  EXPECT_GE(report["validation_samples"], 2 * report["validations"].size());
  EXPECT_EQ(report["left_out_samples"], 0) << "nothing is missing from the comparison";
  EXPECT_THAT(read_file(run_folder() / "metrics.jsonl"), HasSubstr("\"validation_ok\""));
  EXPECT_THAT(read_file(run_folder() / "report.txt"),
              HasSubstr("Held-out tasks while the policy trained"));
}

TEST_F(RunResults, ItsVariantsCanBeExportedFromThePool) {
  ASSERT_EQ(run().code, 0);
  const auto listed = json_lines(
      run_hone({"pool", "ls", "--pool", pool(), "--task", "softmax", "--outcome", "ok", "--json"})
          .out);
  ASSERT_FALSE(listed.empty());
  const std::string id = listed[0]["variant"];
  const std::string file = (folder_ / "faster.py").string();
  const auto exported = run_hone({"export", id, file, "--pool", pool(), "--as", "torch"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const std::string head = read_file(file).substr(0, 400);
  EXPECT_THAT(head, HasSubstr("Variant " + id));
  EXPECT_THAT(head, HasSubstr("times as fast as the original on simulated-"));
  const auto failed =
      json_lines(run_hone({"pool", "ls", "--pool", pool(), "--task", "softmax", "--json"}).out);
  const auto one = std::find_if(failed.begin(), failed.end(),
                                [](const json& v) { return v.at("outcome") == "wrong_result"; });
  ASSERT_NE(one, failed.end());
  EXPECT_THAT(
      run_hone({"export", std::string((*one)["variant"]), file, "--pool", pool(), "--as", "torch"})
          .err,
      HasSubstr("is not known to be correct: judged wrong_result"));
  EXPECT_THAT(run_hone({"export", "0123456789abcdef", file, "--pool", pool(), "--as", "torch"}).err,
              HasSubstr("0123456789abcdef"));
}

// The median of the measurements after the first one, or the first one if there are no others.
double deciding_speedup(const json& evaluation) {
  std::vector<double> speedups;
  for (const json& one : evaluation["measurements"]) {
    if (one["outcome"] == "ok") speedups.push_back(one["speedup"]);
  }
  if (speedups.size() < 2) return evaluation["speedup"];
  std::sort(speedups.begin() + 1, speedups.end());
  return speedups[1 + (speedups.size() - 2) / 2];
}

// Counts of the report, made anew from the lines of `hone pool export`.
class counted_again {
 public:
  explicit counted_again(const std::vector<json>& variants) {
    for (const json& variant : variants) {
      bool is_evaluated = false;
      bool is_compared = false;
      rollouts += variant["rollouts"].size();
      bool in_corpus = false;
      bool is_learned = true;
      for (const json& rollout : variant["rollouts"])
        in_corpus = in_corpus || rollout["origin"] == "corpus";
      for (const json& e : variant["evaluations"]) {
        measurements += e["measurements"].size();
        (e["scope"] == "run" ? is_evaluated : is_compared) = true;
        if (e["scope"] != "run") continue;
        is_learned = is_learned && e["outcome"] == "ok";
        ++outcomes[e["device_type"]][e["outcome"]];
        if (e["outcome"] == "unparsable") continue;
        ++judged;
        timed += e["measurements"].empty() ? 0 : 1;
        new_programs += in_corpus ? 0 : 1;
        const std::string place = std::string(e["task"]) + " on " + std::string(e["device_type"]);
        ++tried[place];
        if (e["outcome"] != "ok") continue;
        ++ok[place];
        if (!best.contains(place) || deciding_speedup(e) > deciding_speedup(best[place]))
          best[place] = e;
      }
      not_learned += in_corpus && !is_learned ? 1 : 0;
      ++variant_states[is_evaluated ? "evaluated" : is_compared ? "compared_only" : "waiting"];
      for (const json& rollout : variant["rollouts"]) add_sample(rollout, variant["evaluations"]);
    }
  }

  std::size_t rollouts = 0;
  std::map<std::string, std::size_t> variant_states;
  // Evaluations by type of device and outcome.
  std::map<std::string, std::map<std::string, std::size_t>> outcomes;
  std::size_t judged = 0;
  std::size_t timed = 0;
  std::size_t new_programs = 0;
  std::size_t not_learned = 0;  // documents of the corpus
  std::size_t measurements = 0;
  std::map<std::string, std::size_t> tried;  // by task and type of device, as are the next two
  std::map<std::string, std::size_t> ok;
  std::map<std::string, json> best;       // evaluation
  std::map<std::string, double> samples;  // by stage, as is the next
  std::map<std::string, double> ok_samples;
  std::map<std::string, std::map<std::string, double>> samples_by_outcome;  // by stage

 private:
  void add_sample(const json& rollout, const json& evaluations) {
    const bool is_comparison = rollout["origin"] == "comparison";
    if (is_comparison && rollout["trained_into_version"].is_null()) return;
    const std::string stage =
        rollout["origin"] == "corpus" ? "corpus" : std::string(rollout["stage"]);
    for (const json& e : evaluations) {
      if (e["scope"] != (is_comparison ? "comparison" : "run") ||
          e["device_type"] != rollout["device_type"])
        continue;
      ++samples[stage];
      ++samples_by_outcome[stage][e["outcome"]];
      if (e["outcome"] != "ok") continue;
      ++ok_samples[stage];
    }
  }
};

TEST_F(RunResults, EveryCountOfItsReportFollowsFromItsPool) {
  ASSERT_EQ(run({"--set", std::string("corpus.folder=") + HONE_SOURCE_DIR + "/configs/corpus",
                 "--set", "corpus.per_task=4"})
                .code,
            0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  const counted_again counted(json_lines(run_hone({"pool", "export", "--pool", pool()}).out));
  EXPECT_EQ(report["judged"], counted.judged);
  EXPECT_EQ(report["timed"], counted.timed);
  EXPECT_EQ(report["new_programs"], counted.new_programs);
  EXPECT_EQ(report["measurements"], counted.measurements);
  EXPECT_LT(counted.new_programs, counted.judged) << "documents of the corpus are not new";
  std::size_t tried = 0;
  for (const json& row : report["tasks"]) {
    const std::string place = std::string(row["task"]) + " on " + std::string(row["device_type"]);
    EXPECT_EQ(row["tried"], counted.tried.at(place)) << place;
    EXPECT_EQ(row["ok"], counted.ok.at(place)) << place;
    EXPECT_EQ(row["speedup"], counted.best.at(place)["speedup"]) << place;
    EXPECT_EQ(row["best_us"], counted.best.at(place)["candidate_us"]) << place;
    EXPECT_EQ(row["reference_us"], counted.best.at(place)["reference_us"]) << place;
    tried += row["tried"].get<std::size_t>();
  }
  EXPECT_EQ(tried, counted.judged) << "the rows add up to the programs judged";
  EXPECT_EQ(report["stages"].size(), 4U);
  for (const json& row : report["stages"]) {
    const std::string stage = row["stage"];
    EXPECT_EQ(row["samples"], counted.samples.at(stage)) << stage;
    EXPECT_NEAR(row["outcomes"]["ok"], counted.ok_samples.at(stage) / counted.samples.at(stage),
                1e-9);
  }
  // The same numbers stand in the statistics of the pool and in the status of the run, and the
  // parts of each add up.
  const json stats = json::parse(run_hone({"pool", "stats", "--pool", pool(), "--json"}).out);
  EXPECT_EQ(stats["rollouts"], counted.rollouts);
  EXPECT_EQ(report["samples"], counted.rollouts);
  EXPECT_EQ(report["left_out_samples"], 0);
  EXPECT_EQ(report["documents_not_learned"], counted.not_learned);
  const std::string text = read_file(run_folder() / "report.txt");
  EXPECT_THAT(text, HasSubstr("Simulated devices have made up"));
  EXPECT_EQ(text.find("not learned:") != std::string::npos, counted.not_learned > 0);
  double samples = 0;
  for (const auto& [stage, count] : counted.samples) samples += count;
  EXPECT_EQ(samples + report["given_up_samples"].get<double>(),
            static_cast<double>(counted.rollouts))
      << "the stages add up to all samples";
  EXPECT_EQ(stats["outcomes"], json(counted.outcomes));
  EXPECT_EQ(stats["evaluations"], report["judged"].get<std::size_t>() +
                                      report["unparsable"].get<std::size_t>() +
                                      report["infrastructure"].get<std::size_t>());
  std::size_t variants = 0;
  for (const auto& [state, count] : counted.variant_states) {
    EXPECT_EQ(stats["variant_states"][state], count) << state;
    EXPECT_EQ(report["variants"][state], count) << state;
    variants += count;
  }
  EXPECT_EQ(stats["variants"], variants);
  const json status = json::parse(run_hone({"status", "--dir", run_folder(), "--json"}).out);
  EXPECT_EQ(status["outcomes"], json(counted.samples_by_outcome.at("comparison")));
}

TEST_F(RunResults, ItsBestSpeedUpsAreOfLaterMeasurements) {
  ASSERT_EQ(run().code, 0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  std::map<std::string, json> evaluations;  // by variant and type of device
  for (const json& v : json_lines(run_hone({"pool", "export", "--pool", pool()}).out)) {
    for (const json& e : v["evaluations"]) {
      if (e["scope"] == "run")
        evaluations[std::string(v["variant"]) + std::string(e["device_type"])] = e;
    }
  }
  std::size_t measured_again = 0;
  for (const json& row : report["tasks"]) {
    const json& best = evaluations.at(std::string(row["best"]) + std::string(row["device_type"]));
    std::vector<double> later;
    for (std::size_t i = 1; i < best["measurements"].size(); ++i)
      later.push_back(best["measurements"][i]["speedup"]);
    EXPECT_EQ(row["measurement_count"], later.size() + 1);
    EXPECT_EQ(row["speedup"], best["speedup"]);
    if (later.empty()) continue;
    ++measured_again;
    std::sort(later.begin(), later.end());
    EXPECT_NEAR(row["later_speedup"], later[(later.size() - 1) / 2], 1e-9);
  }
  EXPECT_GT(measured_again, 0U);
}

TEST_F(RunResults, AStoppedRunsStatusCountsTheSamplesOfItsStage) {
  program running(endless());
  ASSERT_TRUE(wait_for_versions(5));
  running.send(SIGINT);
  ASSERT_EQ(running.wait(std::chrono::seconds(20)), 3);
  const json status = json::parse(run_hone({"status", "--dir", run_folder(), "--json"}).out);
  const counted_again counted(json_lines(run_hone({"pool", "export", "--pool", pool()}).out));
  EXPECT_EQ(status["stage"], "contrastive");
  EXPECT_EQ(status["outcomes"], json(counted.samples_by_outcome.at("contrastive")));
}

}  // namespace
}  // namespace hone
