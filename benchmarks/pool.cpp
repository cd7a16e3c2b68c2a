// Measures how fast the pool records judged variants, chooses exemplars, draws and opens, and how
// fast SQLite stores the same records:
//   pool_benchmark [VARIANTS] (default 1000000)
// Needs about 5 KB of disk per variant in the temporary folder.

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>

#include "benchmarks/judged_pool.hpp"
#include "benchmarks/report.hpp"

namespace hone::benchmark {
namespace {

constexpr std::size_t burst = 512;  // variants per commit
constexpr int tasks = 10;

const char* device_type() { return "cpu-benchmark-gcc12.2"; }

record<schema::DeviceType> the_device() {
  record_builder<schema::DeviceType> type;
  type->setName(device_type());
  return type.finish();
}

// Returns a variant document of about 2 KB whose code depends on `number`.
std::string document_text(std::uint64_t number) {
  std::mt19937_64 random(number);
  std::string text =
      "## Performance Analysis\nThe second one reads its rows once.\n## Code "
      "Implementation\n```cuda\n// variant " +
      std::to_string(number) + "\n";
  while (text.size() < 1950)
    text += "c[" + std::to_string(random() % 10000) + "] = a[i] * b[i + " +
            std::to_string(random() % 1000) + "];\n";
  return text + "```\n";
}

struct judged_group {
  record<schema::RolloutGroup> group;
  std::vector<double> scores;  // one per variant of the group
};

// Returns the group of variants `first` to `first + group_size - 1` with log-normal scores.
judged_group make_group(std::uint64_t first) {
  judged_group made;
  std::mt19937_64 random(first);
  std::normal_distribution<double> log_score(0.2, 0.6);
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  auto draw = group->initDraw();
  random_id<draw_id>().store(draw.initId());
  numbered_task(first / group_size % tasks).store(draw.initTaskId());
  draw.setDeviceType(device_type());
  draw.setStage(Stage::CONTRASTIVE);
  group->setPrompt(std::string(400, 'p'));
  auto rollouts = group->initRollouts(group_size);
  auto variants = group->initVariants(group_size);
  for (unsigned i = 0; i < group_size; ++i) {
    const std::string text = document_text(first + i);
    const auto id = content_id<variant_id>({text});
    random_id<rollout_id>().store(rollouts[i].initId());
    id.store(rollouts[i].initVariantId());
    rollouts[i].setText(text);
    id.store(variants[i].initId());
    variants[i].setTaskId(draw.asReader().getTaskId());
    variants[i].setCuda(text.substr(90));
    variants[i].setPython("def forward(a: Tensor) -> Tensor:\n    return a\n");
    made.scores.push_back(std::exp(log_score(random)));
  }
  made.group = group.finish();
  return made;
}

// Returns an evaluation `ok` with `score` for the variant of a job.
record<schema::Evaluation> judged(const schema::CompileJob::Reader& job, double score) {
  record_builder<schema::Evaluation> e;
  judge(job, score, e.root());
  e->initVerdict().setRounds(10);
  auto m = e->getMeasurements()[0];
  m.setScoreRaw(score);
  m.setDevice("cpu:1");
  m.setNode("benchmark");
  auto timing = m.initCases(1)[0];
  timing.setSizes("N=512 M=512");
  auto buckets = timing.initBuckets(7);
  for (unsigned i = 0; i < 7; ++i) buckets.set(i, score);
  return e.finish();
}

// Inserts `count` variants in bursts. Returns the seconds spent inside the pool and appends the
// rate of each burst, in variants per second, to `rates`.
double insert(pool& into, std::uint64_t first, std::uint64_t count, std::vector<double>& rates) {
  double inside = 0;
  for (std::uint64_t at = first; at < first + count; at += burst) {
    std::vector<judged_group> groups;
    for (std::size_t i = 0; i < burst; i += group_size) groups.push_back(make_group(at + i));
    // The clock includes both writes of a variant, its rollout and its evaluation. It excludes
    // making the evaluations from the jobs that record_group() returns.
    const stopwatch recording;
    std::vector<std::vector<record<schema::CompileJob>>> jobs(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) into.record_group(groups[g].group, 1, jobs[g]);
    double spent = recording.seconds();
    std::vector<record<schema::Evaluation>> results;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < jobs[g].size(); ++i)
        results.push_back(judged(*jobs[g][i], groups[g].scores[i]));
    }
    const stopwatch closing;
    std::vector<record<schema::CompileJob>> follow_ups;
    for (const auto& result : results) into.record_evaluation(result, 1, follow_ups);
    into.commit();
    spent += closing.seconds();
    inside += spent;
    rates.push_back(static_cast<double>(burst) / spent);
  }
  return inside;
}

// A SQLite database with the pool's records under the same keys: one table per column family. Every
// member but the destructor throws std::runtime_error with SQLite's message.
class sqlite_tables {
 public:
  explicit sqlite_tables(const std::filesystem::path& file) {
    check(sqlite3_open(file.c_str(), &db_));
    for (const char* statement :
         {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-98304"})
      execute(statement);
    for (const char* table :
         {"variants", "rollouts", "groups_", "progress", "ready", "evaluations", "exemplars"}) {
      execute(("CREATE TABLE " + std::string(table) + " (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")
                  .c_str());
      sqlite3_stmt* put = nullptr;
      check(sqlite3_prepare_v2(
          db_, ("INSERT OR REPLACE INTO " + std::string(table) + " VALUES (?, ?)").c_str(), -1,
          &put, nullptr));
      puts_.push_back(put);
    }
  }
  ~sqlite_tables() {
    for (sqlite3_stmt* one : puts_) sqlite3_finalize(one);
    sqlite3_close(db_);
  }
  sqlite_tables(const sqlite_tables&) = delete;
  sqlite_tables& operator=(const sqlite_tables&) = delete;

  void begin() { execute("BEGIN"); }
  void commit() { execute("COMMIT"); }

  // Puts the records of a group and of its variants. `sequence` counts the groups.
  void put_group(const judged_group& g, const record<schema::Evaluation>& evaluation,
                 std::uint64_t& sequence) {
    const std::string group_key = key_of(group_id(g.group->getId()));
    put(2, group_key, bytes(g.group));
    put(3, group_key, small_);
    put(4, key_of(sequence++), small_);
    for (const auto variant : g.group->getVariants()) {
      const std::string key = key_of(variant_id(variant.getId()));
      put(0, key, bytes(copy_record<schema::Variant>(variant)));
      put(1, key + group_key, small_);
      put(5, key + device_type(), bytes(evaluation));
      put(6, "e" + key_of(sequence) + key, small_);
      put(6, "s" + key, small_);
    }
  }

 private:
  template <class T>
  static std::string_view bytes(const record<T>& r) {
    return {r.bytes().data(), r.bytes().size()};
  }
  void check(int status) {
    if (status != SQLITE_OK && status != SQLITE_DONE && status != SQLITE_ROW)
      throw std::runtime_error(sqlite3_errmsg(db_));
  }
  void execute(const char* statement) {
    check(sqlite3_exec(db_, statement, nullptr, nullptr, nullptr));
  }
  void put(std::size_t table, const std::string& key, std::string_view value) {
    sqlite3_stmt* statement = puts_[table];
    sqlite3_bind_blob(statement, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    check(sqlite3_step(statement));
    sqlite3_reset(statement);
  }

  sqlite3* db_ = nullptr;
  std::vector<sqlite3_stmt*> puts_;
  const std::string small_ = std::string(56, 's');
};

// Inserts the pool's records into SQLite, one transaction per burst.
void sqlite_inserts(const std::filesystem::path& file, std::uint64_t count) {
  sqlite_tables tables(file);
  double inside = 0;
  std::uint64_t sequence = 0;
  for (std::uint64_t at = 0; at < count; at += burst) {
    std::vector<judged_group> groups;
    for (std::size_t i = 0; i < burst; i += group_size) groups.push_back(make_group(at + i));
    record_builder<schema::CompileJob> job;
    random_id<measurement_id>().store(job->initHeader().initMeasurementId());
    const auto evaluation = judged(*job.finish(), 1.5);
    const stopwatch watch;
    tables.begin();
    for (const judged_group& g : groups) tables.put_group(g, evaluation, sequence);
    tables.commit();
    inside += watch.seconds();
  }
  report("sqlite_sustained_inserts", static_cast<double>(count) / inside, "variants/s");
}

// Opens the pool in a child process, inserts eight bursts and kills the child, so that the next
// opening has a log to replay.
void write_and_die(const std::filesystem::path& folder) {
  const pid_t child = fork();
  if (child == 0) {
    pool dying(options_for(folder));
    dying.add_device_type(the_device());
    std::vector<double> rates;
    insert(dying, 1ULL << 40U, 8 * burst, rates);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

int run(std::uint64_t count) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("hone-pool-benchmark-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    pool filled(options_for(folder / "pool"));
    filled.add_device_type(the_device());
    std::vector<double> rates;
    insert(filled, 0, 20 * burst, rates);
    report("pool_burst_inserts", median(rates), "variants/s");
    rates.clear();
    const double seconds = insert(filled, 20 * burst, count - 20 * burst, rates);
    report("pool_sustained_inserts", static_cast<double>(count - 20 * burst) / seconds,
           "variants/s");
  }
  {
    const stopwatch watch;
    pool opened(options_for(folder / "pool"));
    report("pool_open", watch.seconds(), "s");
  }
  write_and_die(folder / "pool");
  {
    const stopwatch watch;
    pool opened(options_for(folder / "pool"));
    report("pool_open_after_kill", watch.seconds(), "s");
  }
  {
    database db(folder / "pool", database::mode::create_or_open);
    exemplar_index index(db);
    exemplar_selector selector(index, {});
    std::mt19937_64 random(1);
    std::vector<double> choices;
    for (int i = 0; i < 20000; ++i) {
      const stopwatch watch;
      const auto choice = selector.choose(numbered_task(static_cast<std::uint64_t>(i % tasks)),
                                          device_type(), random);
      choices.push_back(watch.seconds() * 1e6);
      if (choice.exemplars.size() != 2) throw std::runtime_error("a draw found too few exemplars");
    }
    report("exemplar_choice_p50", median(choices), "us");
    report("exemplar_choice_p99", quantile(choices, 0.99), "us");
  }
  {
    pool opened(options_for(folder / "pool"));
    std::vector<double> draws;
    for (int i = 0; i < 20000; ++i) {
      const stopwatch watch;
      opened.draw({numbered_task(static_cast<std::uint64_t>(i % tasks)), device_type(),
                   Stage::CONTRASTIVE, 0, 16});
      draws.push_back(watch.seconds() * 1e6);
    }
    report("draw_with_texts_p50", median(draws), "us");
    report("draw_with_texts_p99", quantile(draws, 0.99), "us");
  }
  std::filesystem::remove_all(folder / "pool");
  sqlite_inserts(folder / "pool.sqlite", std::min<std::uint64_t>(count, 200000));
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  try {
    return hone::benchmark::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pool_benchmark: %s\n", e.what());
    return 1;
  }
}
