// Tests of what a report says of a run's samples, against the samples of its pool: curves, sources
// of programs, comparisons and turns.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/exported_samples.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

class RunSamples : public small_run_test {};

TEST_F(RunSamples, ItsCurvesFollowFromItsPool) {
  ASSERT_EQ(run().code, 0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  const auto samples =
      exported_samples(json_lines(run_hone({"pool", "export", "--pool", pool()}).out));
  std::size_t curves = 0;
  for (const json& row : report["stages"]) {
    std::map<std::pair<std::uint64_t, std::string>, std::vector<exported_sample>> groups;
    sums all;
    for (const exported_sample& s : samples) {
      if (s.stage != row["stage"]) continue;
      groups[s.group].push_back(s);
      all.add(s);
    }
    EXPECT_NEAR(row["mean_log_speedup"], all.mean_log(), 1e-9) << row["stage"];
    EXPECT_NEAR(row["ok"], all.ok / all.samples, 1e-9) << row["stage"];
    if (row["curve"].empty()) continue;
    ++curves;
    std::map<std::size_t, sums> curve;
    sums last;
    std::size_t number = 0;
    for (const auto& [group, its] : groups) {
      sums& part = curve[number * 10 / groups.size()];
      const bool is_last = ++number * 4 > groups.size() * 3;
      for (const exported_sample& s : its) {
        part.add(s);
        if (is_last) last.add(s);
      }
    }
    EXPECT_NEAR(row["ok_at_end"], last.ok / last.samples, 1e-9) << row["stage"];
    ASSERT_EQ(row["curve"].size(), curve.size()) << row["stage"];
    for (std::size_t i = 0; const auto& [point, part] : curve) {
      const json& shown = row["curve"][i++];
      EXPECT_EQ(shown["samples"], part.samples);
      EXPECT_NEAR(shown["ok"], part.ok / part.samples, 1e-9);
      EXPECT_NEAR(shown["mean_log_speedup"], part.mean_log(), 1e-9);
    }
  }
  EXPECT_EQ(curves, 2U);
}

// Where the programs of samples come from, by the rules of the report.
std::vector<std::string> sources_of(const std::vector<exported_sample>& samples) {
  std::set<std::string> corpus;
  for (const exported_sample& s : samples) {
    if (s.stage == "corpus") corpus.insert(s.variant);
  }
  std::set<std::string> written;       // before the current group
  std::vector<std::string> unwritten;  // of the current group
  std::vector<std::string> sources;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const exported_sample& s = samples[i];
    if (i > 0 && samples[i - 1].group != s.group) {
      written.insert(unwritten.begin(), unwritten.end());
      unwritten.clear();
    }
    unwritten.push_back(s.variant);
    sources.emplace_back(s.shown.contains(s.variant)   ? "shown"
                         : corpus.contains(s.variant)  ? "corpus"
                         : written.contains(s.variant) ? "known"
                                                       : "new");
  }
  return sources;
}

TEST_F(RunSamples, ItsSourcesOfProgramsFollowFromItsPoolAndAddUp) {
  ASSERT_EQ(run({"--set", std::string("corpus.folder=") + HONE_SOURCE_DIR + "/configs/corpus",
                 "--set", "corpus.per_task=4"})
                .code,
            0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  const auto samples =
      exported_samples(json_lines(run_hone({"pool", "export", "--pool", pool()}).out));
  const auto sources = sources_of(samples);
  for (const json& row : report["stages"]) {
    if (row["stage"] == "corpus") continue;
    std::map<std::string, double> counts;
    std::map<std::string, double> ok;
    double gains = 0;
    double compared = 0;
    double total = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const exported_sample& s = samples[i];
      if (s.stage != row["stage"]) continue;
      ++total;
      ++counts[sources[i]];
      ok[sources[i]] += s.is_ok ? 1 : 0;
      double best = 0;
      for (const auto& [variant, score] : s.shown) best = std::max(best, score);
      if (!s.is_ok || best == 0) continue;
      ++compared;
      gains += std::log(s.score / best);
    }
    double sum = 0;
    for (const auto& [source, its] : row["sources"].items()) {
      EXPECT_EQ(its["samples"], counts[source]) << row["stage"] << " " << source;
      EXPECT_EQ(its["ok"], ok[source]) << row["stage"] << " " << source;
      sum += its["samples"].get<double>();
    }
    EXPECT_EQ(sum, total);
    EXPECT_EQ(sum, row["samples"]) << "every sample has a source";
    ASSERT_GT(compared, 0);
    EXPECT_EQ(row["beside_shown"]["samples"], compared);
    EXPECT_NEAR(row["beside_shown"]["mean_log_gain"], gains / compared, 1e-9);
  }
  EXPECT_THAT(read_file(run_folder() / "report.txt"),
              HasSubstr("compared with the fastest exemplar"));
}

// Compares what the report says of the samples of one place with the samples.
void expect_summary(const json& shown, const std::vector<exported_sample>& samples,
                    const std::string& where) {
  ASSERT_FALSE(samples.empty()) << where;
  double ok = 0;
  double of_ok = 0;
  double all = 0;
  double best = std::log(0.25);
  for (const exported_sample& s : samples) {
    ok += s.is_ok ? 1 : 0;
    of_ok += s.is_ok ? s.log_score() : 0;
    all += s.log_score();
    best = std::max(best, s.log_score());
  }
  const auto n = static_cast<double>(samples.size());
  EXPECT_NEAR(shown["ok"], ok / n, 1e-9) << where;
  EXPECT_NEAR(shown["log_speedup_of_ok"], ok > 0 ? of_ok / ok : 0, 1e-9) << where;
  EXPECT_NEAR(shown["log_speedup"], all / n, 1e-9) << where;
  EXPECT_NEAR(shown["log_speedup_of_best"], best, 1e-9) << where;
}

TEST_F(RunSamples, ItsComparisonFollowsFromItsPool) {
  ASSERT_EQ(
      run({"--set", "tasks.held_out=[\"cross_entropy\"]", "--set", "comparison.curve=1"}).code, 0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  const json& shown = report["comparison"];
  using by_version = std::map<std::uint64_t, std::vector<exported_sample>>;
  // By arm and place: of the tasks that the run learns from, and of the one that is held out.
  std::map<std::string, std::map<std::string, by_version>> learned;
  std::map<std::string, std::map<std::string, by_version>> held_out;
  for (const exported_sample& s :
       exported_samples(json_lines(run_hone({"pool", "export", "--pool", pool()}).out))) {
    const bool is_held_out = s.task == "cross_entropy";
    if (is_held_out) {
      EXPECT_EQ(s.stage, "comparison") << "nothing else is written for a held-out task";
      EXPECT_TRUE(s.shown.empty());
    }
    if (s.stage != "comparison" || !s.is_conclusive) continue;
    EXPECT_TRUE(s.arm != "bare" || s.shown.empty());
    (is_held_out ? held_out : learned)[s.arm][s.place][s.version].push_back(s);
  }
  const std::uint64_t before = shown["before_version"];
  const std::uint64_t after = shown["after_version"];
  const auto& sampled = learned.at("sampled");
  ASSERT_EQ(shown["tasks"].size(), sampled.size());
  double sum_before = 0;
  double sum_after = 0;
  for (const json& row : shown["tasks"]) {
    const by_version& versions = sampled.at(row["task"]);
    expect_summary(row["before"], versions.at(before), std::string(row["task"]) + " before");
    expect_summary(row["after"], versions.at(after), std::string(row["task"]) + " after");
    sum_before += row["before"]["log_speedup"].get<double>();
    sum_after += row["after"]["log_speedup"].get<double>();
  }
  const auto n = static_cast<double>(sampled.size());
  EXPECT_NEAR(shown["before"]["log_speedup"], sum_before / n, 1e-9);
  EXPECT_NEAR(shown["after"]["log_speedup"], sum_after / n, 1e-9);
  EXPECT_NEAR(shown["difference"], (sum_after - sum_before) / n, 1e-9);
  EXPECT_LE(shown["interval"][0], shown["difference"]);
  EXPECT_GE(shown["interval"][1], shown["difference"]);
  for (const char* arm : {"bare", "greedy"}) {
    double sum = 0;
    for (const auto& [place, versions] : learned.at(arm)) {
      double logs = 0;
      for (const exported_sample& s : versions.at(after)) logs += s.log_score();
      sum += logs / static_cast<double>(versions.at(after).size());
    }
    EXPECT_NEAR(shown[arm]["after"]["log_speedup"], sum / n, 1e-9) << arm;
  }
  // The run has two stages before the comparison, so three of its policies are at the end of one,
  // and one within each is on the curve.
  const json& rows = report["held_out"];
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_THAT(std::string(rows[0]["name"]), HasSubstr("before self_supervised"));
  EXPECT_THAT(std::string(rows[1]["name"]), HasSubstr("in self_supervised, step 1"));
  EXPECT_THAT(std::string(rows[2]["name"]), HasSubstr("before contrastive"));
  EXPECT_THAT(std::string(rows[3]["name"]), HasSubstr("in contrastive, step "));
  EXPECT_THAT(std::string(rows[4]["name"]), HasSubstr("at the end"));
  for (const json& row : rows) {
    ASSERT_EQ(row["tasks"].size(), 2U) << "one task on two types of device";
    for (const json& task : row["tasks"])
      expect_summary(task, held_out.at("sampled").at(task["task"]).at(row["version"]),
                     task["task"]);
  }
  double difference = 0;
  for (std::size_t i = 0; i < 2; ++i)
    difference += (rows[4]["tasks"][i]["log_speedup"].get<double>() -
                   rows[2]["tasks"][i]["log_speedup"].get<double>()) /
                  2;
  EXPECT_NEAR(report["held_out_comparison"]["difference"], difference, 1e-9);
  const std::string text = read_file(run_folder() / "report.txt");
  for (const char* said :
       {"Held-out tasks", "the contrastive stage, without exemplars: mean log speed-up",
        "without exemplars in the prompt", "  greedy: ok", "without copies of shown exemplars"})
    EXPECT_THAT(text, HasSubstr(said));
}

TEST_F(RunSamples, ForHeldOutTasksHaveExemplarsThatNothingIsTrainedOn) {
  const std::string corpus = std::string(HONE_SOURCE_DIR) + "/configs/corpus";
  ASSERT_EQ(run({"--set", "tasks.held_out=[\"cross_entropy\"]", "--set",
                 "corpus.folder=\"" + corpus + "\"", "--set", "corpus.held_out=3", "--set",
                 "corpus.timed=false", "--set", "comparison.curve=1"})
                .code,
            0);
  std::map<std::string, std::size_t> with_exemplars;
  std::map<std::string, std::size_t> samples;
  std::size_t documents = 0;
  for (const exported_sample& s :
       exported_samples(json_lines(run_hone({"pool", "export", "--pool", pool()}).out))) {
    if (s.task != "cross_entropy") continue;
    documents += s.stage == "corpus" ? 1 : 0;
    if (s.stage != "comparison") continue;
    ++samples[s.arm];
    with_exemplars[s.arm] += s.shown.empty() ? 0 : 1;
  }
  EXPECT_EQ(documents, 6U) << "three on each of two types of device";
  EXPECT_EQ(with_exemplars["sampled"], samples["sampled"]);
  EXPECT_EQ(with_exemplars["bare"], 0U);
  EXPECT_EQ(samples["bare"], samples["sampled"]);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  for (const json& row : report["held_out"]) EXPECT_TRUE(row["bare"].is_object());
  EXPECT_THAT(
      read_file(run_folder() / "report.txt"),
      testing::AllOf(HasSubstr("the contrastive stage, with exemplars: mean log speed-up"),
                     HasSubstr("the contrastive stage, without exemplars: mean log speed-up")));
}

TEST_F(RunSamples, ItsTurnsFollowFromItsPool) {
  ASSERT_EQ(run({"--set", "generation.turns=3"}).code, 0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  struct turn_sums {
    double samples = 0;
    double ok = 0;
    double better = 0;
  };
  std::map<std::string, std::map<int, turn_sums>> stages;
  for (const json& v : json_lines(run_hone({"pool", "export", "--pool", pool()}).out)) {
    for (const json& r : v["rollouts"]) {
      EXPECT_EQ(r["attempt"].is_null(), r["turn"] == 1);
      if (r["turn"] == 1) continue;
      EXPECT_NE(r["stage"], "comparison");
      EXPECT_LE(r["turn"], 3);
      for (const json& e : v["evaluations"]) {
        if (e["scope"] != "run" || e["device_type"] != r["device_type"]) continue;
        turn_sums& sums = stages[r["stage"]][r["turn"]];
        ++sums.samples;
        if (e["outcome"] != "ok") continue;
        ++sums.ok;
        sums.better += e["speedup"].get<double>() >= 1.05 * r["attempt"]["speedup"].get<double>();
      }
    }
  }
  ASSERT_GT(stages["contrastive"][2].samples, 0);
  for (const json& row : report["stages"]) {
    EXPECT_EQ(row["revisions"].size(), stages[row["stage"]].size());
    for (const json& its : row["revisions"]) {
      const turn_sums& sums = stages[row["stage"]][its["turn"]];
      EXPECT_EQ(its["samples"], sums.samples);
      EXPECT_EQ(its["ok"], sums.ok);
      EXPECT_EQ(its["better"], sums.better);
    }
  }
  EXPECT_THAT(read_file(run_folder() / "report.txt"), HasSubstr("turn 2: "));
}

}  // namespace
}  // namespace hone
