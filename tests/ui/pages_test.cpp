#include "ui/pages/page.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>
#include <set>

#include "messages/measurements.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "storage/pool.hpp"
#include "tasks/task_file.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/source_folder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/ui/markup.hpp"
#include "ui/html/numbers.hpp"
#include "ui/report/html_report.hpp"

namespace hone {
namespace {

using namespace testing_support;

constexpr std::size_t max_page_bytes = 4U << 20U;
constexpr double max_cpu_seconds = 2;

// Replaces the first `from` of a text.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// The fields of an evaluation that tests set.
struct judged {
  variant_id variant;
  task_id task;
  std::string device_type = the_device();
  std::uint32_t scope = run_scope;
  Outcome outcome = Outcome::OK;
  std::string message{};
  std::vector<std::pair<Outcome, double>> measurements{};  // outcomes and scores
  std::string names = "n";                                 // of everything that is measured
  double number = 1;                                       // every other number
};

// A run's folder with a pool that the tests write record by record, past the checks of `pool`.
class PagesTest : public testing::Test {
 protected:
  PagesTest() {
    pool_options options;
    options.folder = folder_ / "pool";
    options.judge_version = 1;
    pool made(options);
    made.commit_step(make_version(0, 0, 0), make_step(0, 0, {}));
  }

  database& db() {
    if (!db_) db_ = std::make_unique<database>(folder_ / "pool", database::mode::create_or_open);
    return *db_;
  }

  // Stores the task softmax under another name; the summary makes its id another one, too.
  task_id add_task(const std::string& name, const std::string& summary) {
    static const std::string file = read_file(source_folder() / "configs/tasks/softmax.toml");
    const auto stored = to_record(
        parse_task(replaced(file, "Softmax of every scaled row", summary), "softmax.toml"));
    record_builder<schema::Task> task(*stored);
    task->setName(name);
    const task_id id(stored->getId());
    db().put(family::tasks, key_of(id), task.finish());
    return id;
  }

  variant_id add_variant(const task_id& task, const std::string& code, const std::string& settings,
                         const std::string& problem = "") {
    const variant_id id = content_id<variant_id>({key_of(task), code, settings, problem});
    record_builder<schema::Variant> variant;
    id.store(variant->initId());
    task.store(variant->initTaskId());
    variant->setSettings(settings);
    // Long texts once, because unoptimised parsers read the pages.
    variant->setCuda(problem.empty() ? code : "");
    variant->setPython(problem.empty() ? code.substr(0, 1000) : "");
    variant->setProblem(problem);
    db().put(family::variants, key_of(id), variant.finish());
    return id;
  }

  // Stores a group with one rollout for each variant.
  group_id add_group(const task_id& task, const std::vector<variant_id>& variants,
                     const std::vector<variant_id>& exemplars, const std::string& text,
                     const std::string& device_type = the_device(), double number = 1) {
    const auto id = random_id<group_id>();
    record_builder<schema::RolloutGroup> group;
    id.store(group->initId());
    group->setFinishedMs(++now_);
    group->setPrompt(text.substr(0, 10'000));
    auto draw = group->initDraw();
    random_id<draw_id>().store(draw.initId());
    task.store(draw.initTaskId());
    draw.setDeviceType(device_type);
    draw.setStage(Stage::CONTRASTIVE);
    auto shown = draw.initExemplars(static_cast<unsigned>(exemplars.size()));
    for (unsigned i = 0; i < shown.size(); ++i) {
      exemplars[i].store(shown[i].initVariantId());
      shown[i].setScore(number);
    }
    auto rollouts = group->initRollouts(static_cast<unsigned>(variants.size()));
    for (unsigned i = 0; i < rollouts.size(); ++i) {
      const auto rollout = random_id<rollout_id>();
      rollout.store(rollouts[i].initId());
      variants[i].store(rollouts[i].initVariantId());
      rollouts[i].setText(text);
      auto runs = rollouts[i].initVersions(1);
      runs[0].setTokens(1);
      const auto number_of_tokens = static_cast<unsigned>(text.empty() ? 0 : 3);
      auto tokens = rollouts[i].initTokens(number_of_tokens);
      auto logs = rollouts[i].initLogProbabilities(number_of_tokens);
      for (unsigned k = 0; k < number_of_tokens; ++k) {
        tokens.set(k, k);
        logs.set(k, static_cast<float>(-number));
      }
      record_builder<schema::RolloutPlace> place;
      id.store(place->initGroupId());
      place->setIndex(i);
      db().put(family::rollouts, rollout_key(variants[i], rollout), place.finish());
    }
    db().put(family::groups, key_of(id), group.finish());
    record_builder<schema::GroupProgress> progress;
    progress->setState(schema::GroupProgress::State::READY);
    db().put(family::progress, key_of(id), progress.finish());
    for (const variant_id& exemplar : exemplars)
      db().put_key(family::shown, shown_key(exemplar, id));
    return id;
  }

  void add_evaluation(const judged& what) {
    record_builder<schema::Evaluation> e;
    what.variant.store(e->initVariantId());
    what.task.store(e->initTaskId());
    e->setDeviceType(what.device_type);
    e->setJudgeVersion(1);
    e->setScope(what.scope);
    random_id<measurement_id>().store(e->initMeasurementId());
    e->setOutcome(what.outcome);
    e->setMessage(what.message);
    e->setKind(what.message.substr(0, 200));
    e->setClosedMs(++now_);
    e->setCompileMs(what.number);
    e->initVerdict().setWorstElement(what.number);
    std::vector<double> scores;
    auto measurements = e->initMeasurements(static_cast<unsigned>(what.measurements.size()));
    for (unsigned i = 0; i < measurements.size(); ++i) {
      const auto [outcome, score] = what.measurements[i];
      if (outcome == Outcome::OK) scores.push_back(score);
      measure(measurements[i], outcome, score, what);
    }
    e->setScore(what.outcome == Outcome::OK ? lower_median(scores) : 0);
    const evaluation_key key{what.variant, what.device_type, 1, what.scope};
    db().put(family::evaluations, key_of(key), e.finish());
  }

  static void measure(schema::Measurement::Builder m, Outcome outcome, double score,
                      const judged& what) {
    random_id<measurement_id>().store(m.initId());
    m.setOutcome(outcome);
    m.setScore(score);
    m.setScoreRaw(what.number == 1 ? score : what.number);
    m.setIntervalLow(what.number * 0.9);
    m.setIntervalHigh(what.number * 1.1);
    m.setNode(what.names);
    m.setDevice(what.names);
    m.setMessage(what.names);
    auto c = m.initCases(1)[0];
    c.setSizes(what.names);
    c.setReferenceUs(what.number);
    c.setCandidateUs(what.number / score);
    c.setSpeedup(what.number);
    c.setIntervalLow(what.number);
    c.setIntervalHigh(what.number);
    c.setBytes(std::numeric_limits<std::uint64_t>::max());
    auto baselines = c.initBaselines(2);
    baselines[0].setName("eager");
    baselines[0].setUs(what.number);
    baselines[1].setName(what.names);
    baselines[1].setUs(what.number);
    auto kernel = c.initKernels(1)[0];
    kernel.setName(what.names);
    kernel.setOccupancy(what.number);
    kernel.setBlocks(std::numeric_limits<std::uint64_t>::max());
  }

  std::shared_ptr<snapshot> read() {
    db().commit();
    db_.reset();
    return std::make_shared<snapshot>(folder_ / "pool");
  }

  temporary_folder folder_;
  std::unique_ptr<database> db_;
  std::uint64_t now_ = 1'700'000'000'000;
};

// Makes a page, and checks that it is sound.
template <class Make>
std::string sound(const std::string& about, const Make& make) {
  const std::clock_t begin = std::clock();
  const page made = make();
  std::string body = made.body.str();
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, max_cpu_seconds) << about;
  EXPECT_LT(body.size(), max_page_bytes) << about;
  const markup found = parsed(body);
  EXPECT_EQ(found.error, "") << about;
  // Elements that the builder may make, and that no page here does.
  for (const std::string& tag : found.tags) EXPECT_TRUE(tag != "b" && tag != "i") << about;
  for (const std::string& link : found.links)
    EXPECT_TRUE(link.starts_with("/") || link.starts_with("#")) << about << ": " << link;
  EXPECT_EQ(parsed(html::element("h1", {}, {html::text(made.title)}).str()).error, "") << about;
  return body;
}

// The texts of the cells of all rows of the tables of a page, without heads.
std::vector<std::vector<std::string>> rows_of(const std::string& page) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t at = page.find("<tr>"); at != page.npos; at = page.find("<tr>", at + 1)) {
    const std::string row = page.substr(at, page.find("</tr>", at) - at);
    if (row.find("scope=\"col\"") != row.npos) continue;
    std::vector<std::string> cells;
    for (std::size_t cell = row.find("<t", 4); cell != row.npos;) {
      const std::size_t end = std::min(row.find("</td>", cell), row.find("</th>", cell));
      cells.push_back(parsed(row.substr(cell, end + 5 - cell)).text);
      cell = row.find("<t", end);
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

const std::vector<double>& odd_numbers() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  static const std::vector<double> numbers = {
      std::numeric_limits<double>::quiet_NaN(), inf, -inf, 0, -1, 1e6, 1e300, 1e-300, 1, 2.5};
  return numbers;
}

// Texts that break careless pages, and some that only whole programs can be.
const std::vector<std::string>& hostile_programs() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all = hostile_texts();
    // Each byte becomes a marker. Two programs of different lines.
    std::string markers;
    for (int i = 0; i < 64; ++i) {
      for (int k = 0; k < 1000; ++k) markers += "\x01\x02";
      markers += "\n";
    }
    all.push_back(markers);
    for (const char* begin : {"a", "b"}) {
      std::string lines;
      for (int i = 0; i < 10'000; ++i) lines += begin + std::to_string(i) + "\n";
      all.push_back(lines);
    }
    return all;
  }();
  return texts;
}

// A pool with a hostile text in each place where a stranger's text can be.
class HostilePagesTest : public PagesTest {
 protected:
  HostilePagesTest() {
    const auto& texts = hostile_programs();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string& hostile = texts[i];
      const std::string name = hostile.substr(0, 500);
      const std::string device_type = i % 2 == 0 ? the_device() : name;
      const task_id task = add_task(name, "summary " + std::to_string(i));
      variants_.push_back(add_variant(task, hostile, name));
      variants_.push_back(add_variant(task, hostile, "", hostile.empty() ? "-" : hostile));
      groups_.push_back(add_group(
          task, {variants_.end()[-2], variants_.end()[-1]},
          i == 0 ? std::vector<variant_id>{} : std::vector{variants_.front(), variants_.end()[-4]},
          "## Performance Analysis\n\n" + hostile, device_type, odd(i)));
      add_evaluation({variants_.end()[-2],
                      task,
                      device_type,
                      run_scope,
                      Outcome::OK,
                      hostile,
                      {{Outcome::OK, odd(i)}, {Outcome::UNSTABLE, odd(i + 1)}, {Outcome::OK, 2}},
                      name,
                      odd(i + 2)});
      const auto outcome = static_cast<Outcome>(1 + i % 10);
      add_evaluation({variants_.end()[-1],
                      task,
                      device_type,
                      run_scope,
                      outcome,
                      "cuda:1: " + name + "\npython:2:3: " + hostile,
                      {},
                      name,
                      odd(i)});
      add_evaluation({variants_.end()[-1],
                      task,
                      device_type,
                      comparison_scope,
                      Outcome::OK,
                      name,
                      {{Outcome::OK, odd(i)}},
                      name,
                      odd(i)});
    }
    of_ = read();
  }

  static double odd(std::size_t i) { return odd_numbers()[i % odd_numbers().size()]; }

  std::vector<variant_id> variants_;
  std::vector<group_id> groups_;
  std::shared_ptr<snapshot> of_;
};

TEST_F(HostilePagesTest, ListsAreSound) {
  for (const std::string& hostile : hostile_texts()) {
    const std::string value = hostile.substr(0, 2000);
    page_request request;
    for (const char* key : {"on", "from", "x"}) request.query[key] = value;
    request.query[value] = value;
    sound("tasks", [&] { return tasks_page(*of_, request); });
    sound("failures", [&] { return failures_page(*of_, request); });
    std::string target;
    try {
      sound("find", [&] { return find_page(*of_, value, target); });
    } catch (const not_found&) {
    }
    if (value.empty()) continue;
    EXPECT_THROW((void)tasks_page(*of_, {"tasks", {}, {{"sort", value}}}), not_found);
    EXPECT_THROW((void)failures_page(*of_, {"failures", {}, {{"outcome", value}}}), not_found);
  }
  const std::string run = sound("run", [&] { return run_page(*of_, {}, "state <b>"); });
  EXPECT_NE(run.find("state &lt;b&gt;"), run.npos);
  for (const char* sort : {"gain", "name", "tried", "ok"})
    sound(sort, [&] { return tasks_page(*of_, {"tasks", {}, {{"sort", sort}}}); });
}

TEST_F(HostilePagesTest, TasksAreSound) {
  for (const auto& place : of_->rows.places) {
    const page_request request{"task", {place.name}, {{"on", place.device_type}}};
    sound("task " + place.name, [&] { return task_page(*of_, request); });
  }
  EXPECT_THROW(task_page(*of_, {"task", {"<none>"}, {}}), not_found);
}

TEST_F(HostilePagesTest, VariantsAndGroupsAreSound) {
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    const std::string page = sound("variant " + std::to_string(i), [&] {
      return variant_page(*of_, {"variant", {to_string(variants_[i])}, {}});
    });
    if (hostile_programs()[i / 2].starts_with("</script>")) {
      EXPECT_NE(parsed(page).text.find("</script><script>alert(1)</script>"), page.npos);
    }
  }
  for (std::size_t i = 0; i < groups_.size(); ++i)
    sound("group " + std::to_string(i), [&] {
      return group_page(*of_, {"group", {to_string(groups_[i])}, {}});
    });
  for (const std::string& hostile : hostile_texts()) {
    EXPECT_THROW(variant_page(*of_, {"variant", {hostile}, {}}), not_found);
    EXPECT_THROW(group_page(*of_, {"group", {hostile}, {}}), not_found);
  }
}

TEST_F(HostilePagesTest, DiffsAreSound) {
  for (std::size_t i = 0; i < variants_.size(); i += 2) {
    const std::string id = to_string(variants_[i]);
    const std::string next = to_string(variants_[(i + 2) % variants_.size()]);
    for (const std::string view : {"", "unified"}) {
      for (const std::string& before : {std::string("reference"), next})
        sound("diff " + std::to_string(i) + view, [&] {
          return diff_page(*of_, {"diff", {before, id}, {{"view", view}}});
        });
    }
  }
}

TEST_F(HostilePagesTest, HistoriesOfAClusterAreSound) {
  for (const std::string& hostile : hostile_texts()) {
    const std::string name = one_line(nlohmann::ordered_json(hostile.substr(0, 500)));
    const std::string counts = R"({"queued":1,"in_flight":-1,"processed":"x","actors":1e300})";
    write_file(folder_ / "history.jsonl",
               "{}\n[]\n" + hostile + "\n" + R"({"time_ms":"x","busy":[1],"rooms":7})" + "\n" +
                   R"({"time_ms":1,"stage":)" + name + R"(,"busy":{)" + name +
                   R"(:1e300,"b":null)" + R"(},"queues":{)" + name + ":" + counts +
                   R"(},"rooms":{)" + name + ":" + counts + R"(},"devices":{)" + name +
                   R"(:{"clock_mhz":1e300},"b":7}})" + "\n{\"time_ms\"");
    sound("cluster", [&] { return cluster_page(folder_.path(), {}); });
  }
  write_file(folder_ / "history.jsonl", "{}\n");
  sound("cluster", [&] { return cluster_page(folder_.path(), {}); });
  write_file(folder_ / "history.jsonl", "");
  sound("cluster", [&] { return cluster_page(folder_.path(), {}); });
}

TEST_F(HostilePagesTest, ManyActorsShareALaneAndOutliersKeepTheirs) {
  nlohmann::ordered_json busy;
  nlohmann::ordered_json devices;
  for (int i = 0; i < 60; ++i) {
    const std::string name = "benchmarker node-" + std::to_string(i) + " cuda:0";
    busy[name] = i == 7 ? 0.1 : 0.9;
    devices[name] = {{"clock_mhz", i == 9 ? 1200 : 1980}};
  }
  // Counts of actors are sums, and written as such.
  const nlohmann::ordered_json rooms = {{"compiler", {{"actors", 3.0}, {"processed", 1234.0}}}};
  nlohmann::ordered_json row = {
      {"time_ms", 1}, {"busy", busy}, {"rooms", rooms}, {"devices", devices}};
  write_file(folder_ / "history.jsonl", row.dump() + "\n");
  const std::string text = sound("cluster", [&] { return cluster_page(folder_.path(), {}); });
  const std::string lanes = text.substr(0, text.find("Queues"));
  EXPECT_NE(lanes.find("mean of 60"), std::string::npos);
  EXPECT_NE(lanes.find("node-7 "), std::string::npos);
  EXPECT_EQ(lanes.find("node-8 "), std::string::npos);
  EXPECT_NE(text.find("slower than most"), std::string::npos);
  EXPECT_NE(text.find("1,234"), std::string::npos);
}

TEST_F(HostilePagesTest, AnswersAreJson) {
  const auto expect_json = [&](std::vector<std::string> segments,
                               std::map<std::string, std::string> query = {}) {
    std::string about;
    for (const std::string& segment : segments) about += "/" + segment;
    const std::clock_t begin = std::clock();
    const std::string answer =
        one_line(api_answer(*of_, {"api", std::move(segments), std::move(query)}, "state"));
    EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, max_cpu_seconds) << about;
    EXPECT_TRUE(nlohmann::json::accept(answer)) << about;
    EXPECT_EQ(answer.find('\n'), answer.npos);
  };
  expect_json({"changes"});
  expect_json({"report"});
  expect_json({"variants"}, {{"limit", "1000"}});
  for (const std::string& hostile : hostile_texts()) {
    expect_json({"variants"}, {{"task", hostile}, {"from", hostile}, {"limit", hostile}});
    EXPECT_THROW(api_answer(*of_, {"api", {hostile, hostile}, {}}, ""), not_found);
  }
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    expect_json({"variant", to_string(variants_[i])});
    expect_json({"descendants", to_string(variants_[i])});
    expect_json(
        {"diff", to_string(variants_[i]), to_string(variants_[(i + 2) % variants_.size()])});
  }
  for (const group_id& group : groups_) expect_json({"group", to_string(group)});
}

TEST_F(HostilePagesTest, ReportIsSound) {
  std::string hostile;
  for (const std::string& text : hostile_texts()) hostile += text.substr(0, 1000) + "\n";
  const reported_run run{hostile, hostile, folder_ / "pool", hostile,
                         R"({"busy":{)" + one_line(nlohmann::ordered_json(hostile)) + ":1e300}}"};
  for (const std::vector<reported_run>& runs : {std::vector{run}, std::vector{run, run}}) {
    const std::string report = html_report(runs, hostile);
    EXPECT_EQ(parsed(report).error, "");
    EXPECT_EQ(report.find("<script"), report.npos);
    EXPECT_LT(report.size(), runs.size() * max_page_bytes);
  }
}

// Variants with every combination of outcomes, scopes and measurements that a pool may hold.
class GeneratedPagesTest : public PagesTest {
 protected:
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    const auto score = [&] { return std::exp2(static_cast<double>(random()) / 1e9 - 2); };
    for (unsigned t = 0; t < 4; ++t) {
      const task_id task = add_task("task_" + std::to_string(t), std::to_string(t));
      std::vector<variant_id> known;
      for (unsigned i = 0; i < 12; ++i) {
        const variant_id id =
            add_variant(task, std::to_string(i), pick(3) == 0 ? "fast_math = true\n" : "");
        add_group(task, {id}, known, pick(3) == 0 ? "" : "text");
        known.push_back(id);
        for (const char* type : {the_device(), "simulated-a"}) {
          // The tasks 0 and 1: no ok variant, and ok variants without scores.
          judged what{id, task, type};
          what.outcome = t == 0                  ? static_cast<Outcome>(1 + pick(10))
                         : t == 1 || pick(3) > 0 ? Outcome::OK
                                                 : static_cast<Outcome>(pick(11));
          what.message = "message " + std::to_string(pick(3));
          for (unsigned m = t == 1 ? 0 : pick(6); m > 0; --m)
            what.measurements.push_back({pick(5) == 0 ? Outcome::UNSTABLE : Outcome::OK, score()});
          if (pick(4) > 0) add_evaluation(what);
          what.scope = screening_scope;
          if (pick(4) == 0) add_evaluation(what);
          what.scope = comparison_scope;
          what.measurements = {{Outcome::OK, 1000}};
          what.outcome = Outcome::OK;
          if (pick(4) == 0) add_evaluation(what);
        }
      }
    }
  }
};

TEST_F(GeneratedPagesTest, ListsAgreeWithTheCommands) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    fill(seed);
    const auto of = read();
    // What `hone pool top` lists, and the evaluations that count.
    std::map<std::pair<std::string, std::string>, std::vector<record<schema::Evaluation>>> top;
    for (const auto& e : of->pool.top(1000))
      top[{name_or_id(of->pool, task_id(e->getTaskId())), text(e->getDeviceType())}].push_back(e);
    std::map<std::pair<std::string, std::string>, std::map<std::string, schema::Evaluation::Reader>>
        counted_ones;
    std::vector<record<schema::Evaluation>> kept;
    of->pool.each_known_evaluation(
        [&](const evaluation_key& key, const record<schema::Evaluation>& e) {
          kept.push_back(e);
          counted_ones[{name_or_id(of->pool, task_id(e->getTaskId())), key.device_type}].emplace(
              short_id(key.variant), *kept.back());
        });

    const auto lines = rows_of(tasks_page(*of, {"tasks", {}, {}}).body.str());
    EXPECT_EQ(lines.size(), counted_ones.size());
    double last = std::numeric_limits<double>::infinity();
    for (const auto& line : lines) {
      const std::pair where{line.at(0), line.at(1)};
      const auto& all = counted_ones.at(where);
      std::uint64_t tried = 0;
      std::uint64_t ok = 0;
      for (const auto& [variant, e] : all) {
        tried += e.getOutcome() != Outcome::UNPARSABLE && e.getOutcome() != Outcome::INFRASTRUCTURE;
        ok += e.getOutcome() == Outcome::OK;
      }
      EXPECT_EQ(line.at(7), count_text(tried));
      EXPECT_EQ(
          line.at(8),
          count_text(ok) + " (" +
              percent_text(tried > 0 ? static_cast<double>(ok) / static_cast<double>(tried) : 0) +
              ")");
      const auto best = top.find(where);
      if (best == top.end()) {
        EXPECT_EQ(line.at(4), "-");
        EXPECT_TRUE(line.at(10).starts_with(ok > 0 ? "not timed" : "none ok")) << line.at(10);
        last = 0;
        continue;
      }
      const headline expected = headline_of(*best->second.front());
      EXPECT_EQ(line.at(4), speedup_text(expected.speedup));
      EXPECT_EQ(line.at(5), range_text(expected));
      EXPECT_EQ(line.at(11), short_id(variant_id(best->second.front()->getVariantId())));
      EXPECT_LE(expected.speedup, last);  // sorted by gain
      last = expected.speedup;
    }

    for (const auto& [where, all] : counted_ones) {
      const page_request request{"task", {where.first}, {{"on", where.second}}};
      auto rows = rows_of(task_page(*of, request).body.str());
      std::erase_if(rows, [](const auto& row) { return row.size() != 7; });  // those of the plot
      ASSERT_EQ(rows.size(), all.size());
      double last_deciding = std::numeric_limits<double>::infinity();
      for (const auto& row : rows) {
        const auto& e = all.at(row.at(0));
        const headline expected = headline_of(e);
        EXPECT_EQ(row.at(1), name_of(e.getOutcome()));
        EXPECT_EQ(row.at(4), speedup_text(expected.speedup));
        EXPECT_EQ(row.at(5), is_screening(e.getScope()) ? "screened"
                             : expected.speedup > 0     ? range_text(expected)
                                                        : "-");
        EXPECT_LE(expected.deciding(), last_deciding);
        last_deciding = expected.deciding();
      }
    }
    const auto answer = api_answer(*of, {"api", {"variants"}, {{"limit", "1000"}}}, "");
    for (const auto& row : answer["variants"]) {
      const auto& e = counted_ones.at({row["task"], row["device_type"]})
                          .at(row["variant"].get<std::string>().substr(0, 10));
      const auto shown = to_json(e, row["task"]);
      EXPECT_EQ(row["speedup"], shown["speedup"]);
      EXPECT_EQ(row["measurement_count"], shown["measurement_count"]);
    }
  }
}

TEST_F(PagesTest, TasksOfOneNameHavePagesOfTheirOwn) {
  const task_id first = add_task("softmax", "1");
  const task_id second = add_task("softmax", "2");
  const variant_id a = add_variant(first, "a", "");
  const variant_id b = add_variant(second, "b", "");
  add_evaluation({a, first, the_device(), run_scope, Outcome::OK, "", {{Outcome::OK, 2}}});
  add_evaluation({b, second, the_device(), run_scope, Outcome::OK, "", {{Outcome::OK, 3}}});
  const auto of = read();
  std::set<std::string> shown;
  for (const std::string& link : parsed(tasks_page(*of, {}).body.str()).links) {
    if (!link.starts_with("/task/")) continue;
    const std::string id = link.substr(6, 32);
    const std::string page = task_page(*of, {"task", {id}, {}}).body.str();
    for (const variant_id& variant : {a, b}) {
      if (page.find(to_string(variant)) != page.npos) shown.insert(id + short_id(variant));
    }
  }
  EXPECT_EQ(shown, (std::set{to_string(first) + short_id(a), to_string(second) + short_id(b)}));
}

TEST_F(PagesTest, OtherRowsBeginWithTheFirst) {
  const page_request request{"tasks", {}, {{"from", "200"}, {"sort", "ok"}, {"on", ""}}};
  EXPECT_EQ(request.with("/tasks", "sort", "name").str(), "/tasks?sort=name");
  EXPECT_EQ(request.with("/tasks", "from", "400").str(), "/tasks?from=400&sort=ok");
}

TEST_F(PagesTest, PagesOfAnEmptyPoolAreSound) {
  const auto of = read();
  sound("run", [&] { return run_page(*of, {}, ""); });
  sound("tasks", [&] { return tasks_page(*of, {}); });
  sound("failures", [&] { return failures_page(*of, {}); });
  EXPECT_EQ(parsed(html_report({{"r", "", folder_ / "pool", "", ""}}, "")).error, "");
}

}  // namespace
}  // namespace hone
