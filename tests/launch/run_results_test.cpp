// Tests of what is left of a run, through the program: its report, its pool and its variants.

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
  EXPECT_THAT(run_hone({"export", "0123456789abcdef", file, "--pool", pool(), "--as", "torch"}).err,
              HasSubstr("0123456789abcdef"));
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
        (e["scope"] == 0 ? is_evaluated : is_compared) = true;
        if (e["scope"] != 0) continue;
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
        if (!best.contains(place) || e["speedup"] > best[place]["speedup"]) best[place] = e;
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
      if (e["scope"] != (is_comparison ? 1 : 0) || e["device_type"] != rollout["device_type"])
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
  EXPECT_EQ(samples, static_cast<double>(counted.rollouts)) << "the stages add up to all samples";
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

// A sample with its evaluation, as `hone pool export` has it.
struct exported_sample {
  std::string stage;
  std::pair<std::uint64_t, std::string> group;  // by which groups are in the order of time
  std::uint64_t version = 0;
  std::string place;
  std::string task;
  std::string variant;
  std::string arm;
  std::map<std::string, double> shown;  // exemplars with their scores
  bool is_ok = false;
  bool is_conclusive = true;
  double score = 0;

  double log_score() const { return std::log(is_ok ? score : 0.25); }
};

std::vector<exported_sample> exported_samples(const std::vector<json>& variants) {
  std::vector<exported_sample> all;
  for (const json& variant : variants) {
    for (const json& r : variant["rollouts"]) {
      for (const json& e : variant["evaluations"]) {
        if (e["device_type"] != r["device_type"] ||
            e["scope"] != (r["origin"] == "comparison" ? 1 : 0))
          continue;
        exported_sample s;
        s.stage = r["origin"] == "corpus" ? "corpus" : std::string(r["stage"]);
        s.group = {r["written_ms"], r["group"]};
        s.version = r["policy_version"];
        s.task = e["task"];
        s.place = s.task + " on " + std::string(e["device_type"]);
        s.variant = variant["variant"];
        s.arm = r["arm"];
        for (const json& one : r["exemplars"]) s.shown[one["variant"]] = one["speedup"];
        s.is_ok = e["outcome"] == "ok";
        s.is_conclusive = e["outcome"] != "unstable" && e["outcome"] != "infrastructure";
        s.score = s.is_ok ? e["speedup"].get<double>() : 0;
        all.push_back(std::move(s));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.group < b.group; });
  return all;
}

// Sums over samples, and their logs by place.
struct sums {
  double samples = 0;
  double ok = 0;
  std::map<std::string, std::pair<double, double>> logs;
  void add(const exported_sample& s) {
    ++samples;
    ok += s.is_ok ? 1 : 0;
    if (!s.is_conclusive) return;
    ++logs[s.place].first;
    logs[s.place].second += s.log_score();
  }
  double mean_log() const {
    double sum = 0;
    for (const auto& [place, its] : logs) sum += its.second / its.first;
    return logs.empty() ? 0 : sum / static_cast<double>(logs.size());
  }
};

TEST_F(RunResults, ItsCurvesFollowFromItsPool) {
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

TEST_F(RunResults, ItsSourcesOfProgramsFollowFromItsPoolAndAddUp) {
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
    double beside = 0;
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
      ++beside;
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
    ASSERT_GT(beside, 0);
    EXPECT_EQ(row["beside_shown"]["samples"], beside);
    EXPECT_NEAR(row["beside_shown"]["mean_log_gain"], gains / beside, 1e-9);
  }
  EXPECT_THAT(read_file(run_folder() / "report.txt"), HasSubstr("beside the fastest exemplar"));
}

TEST_F(RunResults, ItsBestSpeedUpsAreOfLaterMeasurements) {
  ASSERT_EQ(run().code, 0);
  const json report = json::parse(read_file(run_folder() / "report.json"));
  std::map<std::string, json> evaluations;  // by variant and type of device
  for (const json& v : json_lines(run_hone({"pool", "export", "--pool", pool()}).out)) {
    for (const json& e : v["evaluations"]) {
      if (e["scope"] == 0)
        evaluations[std::string(v["variant"]) + std::string(e["device_type"])] = e;
    }
  }
  std::size_t measured_again = 0;
  for (const json& row : report["tasks"]) {
    const json& best = evaluations.at(std::string(row["best"]) + std::string(row["device_type"]));
    std::vector<double> later;
    for (std::size_t i = 1; i < best["measurements"].size(); ++i)
      later.push_back(best["measurements"][i]["speedup"]);
    EXPECT_EQ(row["later_measurements"], later.size());
    if (later.empty()) continue;
    ++measured_again;
    std::sort(later.begin(), later.end());
    const double median = (later[(later.size() - 1) / 2] + later[later.size() / 2]) / 2;
    EXPECT_NEAR(row["later_speedup"], median, 1e-9);
  }
  EXPECT_GT(measured_again, 0U);
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

TEST_F(RunResults, ItsComparisonFollowsFromItsPool) {
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
       {"Held-out tasks", "the contrastive stage: mean log speed-up",
        "without exemplars in the prompt", "  greedy: ok", "without copies of shown exemplars"})
    EXPECT_THAT(text, HasSubstr(said));
}

TEST_F(RunResults, ItsTurnsFollowFromItsPool) {
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
        if (e["scope"] != 0 || e["device_type"] != r["device_type"]) continue;
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
