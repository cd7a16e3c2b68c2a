// Measures what a large pool costs: opening it, the best variant, an exemplar draw, and the report
// of its run, with the memory that each needs:
//   report_benchmark [VARIANTS] [ROLLOUTS] [DIRECTORY] (default 100000 and 1000000)
// With a directory, the pool stays there as DIRECTORY/pool, for `hone ui DIRECTORY`.
// The groups are as they are once tokens and texts have been removed (pool.keep_tokens,
// pool.keep_texts). Needs about 1.5 KB of disk per variant and 0.2 KB per rollout.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "benchmarks/judged_pool.hpp"
#include "benchmarks/report.hpp"
#include "results/report.hpp"

namespace hone::benchmark {
namespace {

constexpr std::size_t groups_per_commit = 64;
constexpr int tasks = 24;
constexpr const char* device_type = "cpu-benchmark";

variant_id numbered_variant(std::uint64_t i) { return {i * 0x9e3779b97f4a7c15ULL + 1, i + 1}; }

// Returns a group of the given variants of one task, without their programs if they are known.
record<schema::RolloutGroup> make_group(std::uint64_t task, const std::vector<std::uint64_t>& of,
                                        bool is_new, std::uint64_t at_ms) {
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  group->setFinishedMs(at_ms);
  group->setTokensRemoved(true);
  auto draw = group->initDraw();
  random_id<draw_id>().store(draw.initId());
  numbered_task(task).store(draw.initTaskId());
  draw.setDeviceType(device_type);
  draw.setStage(Stage::CONTRASTIVE);
  auto exemplars = draw.initExemplars(2);
  for (unsigned i = 0; i < 2; ++i) {
    numbered_variant(of[i]).store(exemplars[i].initVariantId());
    exemplars[i].setScore(1.5);
  }
  auto rollouts = group->initRollouts(static_cast<unsigned>(of.size()));
  auto variants = group->initVariants(static_cast<unsigned>(of.size()));
  for (unsigned i = 0; i < of.size(); ++i) {
    random_id<rollout_id>().store(rollouts[i].initId());
    numbered_variant(of[i]).store(rollouts[i].initVariantId());
    rollouts[i].initVersions(1)[0].setTokens(200);
    numbered_variant(of[i]).store(variants[i].initId());
    numbered_task(task).store(variants[i].initTaskId());
    if (is_new) variants[i].setPython(std::string(600, 'p') + std::to_string(of[i]));
  }
  return group.finish();
}

// Fills a pool: first each variant once, then repeats.
void fill(const std::filesystem::path& folder, std::uint64_t variants, std::uint64_t rollouts) {
  pool p(options_for(folder));
  for (std::uint64_t t = 0; t < tasks; ++t) {
    record_builder<schema::Task> task;
    numbered_task(t).store(task->initId());
    const std::string name = "task" + std::to_string(t);
    task->setName(name);
    task->setText("name = \"" + name + "\"\n" + R"(summary = "A scaled vector"
reference = """
def forward(x: Tensor) -> Tensor:
    return x * 2.0
"""

[[input]]
name = "x"
shape = ["N"]

[[case]]
sizes = { N = 4096 }
timed = true

[[case]]
sizes = { N = 37 }
)");
    p.add_task(task.finish());
  }
  record_builder<schema::DeviceType> type;
  type->setName(device_type);
  p.add_device_type(type.finish());
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> score(0.2, 0.6);
  std::uint64_t written = 0;
  for (std::uint64_t group = 0; written < rollouts; ++group) {
    std::vector<std::uint64_t> of;
    const bool is_new = written + group_size <= variants;
    // Variant v belongs to task (v / group_size) % tasks.
    const std::uint64_t chosen = is_new ? group : random() % (variants / group_size);
    for (unsigned i = 0; i < group_size; ++i) of.push_back(chosen * group_size + i);
    std::vector<record<schema::CompileJob>> jobs;
    p.record_group(make_group(chosen % tasks, of, is_new, group), 1, jobs);
    std::vector<record<schema::CompileJob>> more;
    for (const auto& job : jobs) {
      record_builder<schema::Evaluation> evaluation;
      judge(*job, score(random), evaluation.root());
      p.record_evaluation(evaluation.finish(), 1, more);
    }
    written += group_size;
    if (group % groups_per_commit == 0) p.commit();
  }
  p.commit();
}

double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

// Resets what resident_mib() reports to the present.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  using namespace hone::benchmark;
  const std::uint64_t variants = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
  const std::uint64_t rollouts = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000000;
  const std::filesystem::path folder = argc > 3 ? std::filesystem::path(argv[3]) / "pool"
                                                : std::filesystem::temp_directory_path() /
                                                      ("hone-report-" + std::to_string(getpid()));
  {
    const stopwatch filling;
    fill(folder, variants, rollouts);
    report("report.fill", filling.seconds(), "s");
  }
  forget_peak();
  {
    const stopwatch opening;
    hone::pool p(options_for(folder));
    report("report.open", opening.seconds(), "s");
    std::vector<double> best;
    std::vector<double> draws;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const stopwatch asking;
      (void)p.best(numbered_task(i % tasks), device_type);
      best.push_back(asking.seconds() * 1e6);
      const stopwatch drawing;
      (void)p.draw({numbered_task(i % tasks), device_type});
      draws.push_back(drawing.seconds() * 1e6);
    }
    report("report.best_p99", quantile(best, 0.99), "us");
    report("report.draw_p99", quantile(draws, 0.99), "us");
    report("report.pool_peak", resident_mib(), "MiB");
  }
  forget_peak();
  const stopwatch reporting;
  const auto made = hone::make_report(folder);
  report("report.make", reporting.seconds(), "s");
  report("report.peak", resident_mib(), "MiB");
  report("report.samples", made.json.at("samples").get<double>(), "samples");
  if (argc <= 3) std::filesystem::remove_all(folder);
  return 0;
}
