// Measures how often the CPU judge refuses honest programs, and how far repeated scores spread,
// while another core is busy:
//   honest_benchmark [REPETITIONS] [A/A MEASUREMENTS] [FILTER]
// Judges every document of the honest set REPETITIONS times (default 20), then the reference of the
// task `softmax` against itself (default 200 times). FILTER keeps only the documents whose
// "task/name" contains it, and shows each of their measurements. Prints "name value unit" lines;
// refused evaluations go to standard error with their outcome and message.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "benchmarks/report.hpp"
#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cpu/cpu_device.hpp"
#include "tests/support/evaluator.hpp"
#include "tests/support/honest_set.hpp"

namespace hone::benchmark {
namespace {

// Keeps one core busy with a spinning thread, as a policy would while the judge works. Must be
// constructed after the devices' cores are reserved, so that the thread does not run on one of
// them.
class busy_core {
 public:
  busy_core()
      : spin_([this] {
          while (!stop_.load(std::memory_order_relaxed)) {
          }
        }) {}
  ~busy_core() {
    stop_ = true;
    spin_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread spin_;
};

// Returns the largest score over the smallest, minus one: 0.1 means that the best score is ten per
// cent above the worst. `scores` must not be empty.
double spread(const std::vector<double>& scores) {
  const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  return *most / *least - 1;
}

void show_measurements(const corpus_document& document,
                       const schema::Evaluation::Reader& evaluation) {
  for (const auto m : evaluation.getMeasurements()) {
    for (const auto c : m.getCases()) {
      std::fprintf(stderr, "%s/%s: %.3f [%.3f, %.3f] %.1f us against %.1f us, %u rounds\n",
                   document.task.c_str(), document.name.c_str(), m.getScoreRaw(),
                   m.getIntervalLow(), m.getIntervalHigh(), c.getCandidateUs(), c.getReferenceUs(),
                   c.getRounds());
    }
  }
}

void judge_honest_set(testing_support::evaluator& judge, const testing_support::honest_set& set,
                      int repetitions, bool show) {
  std::vector<std::vector<double>> scores(set.documents.size());
  std::vector<double> seconds;
  std::vector<double> compile_ms;
  std::vector<double> verify_ms;
  std::vector<double> measure_ms;
  int refused = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t i = 0; i < set.documents.size(); ++i) {
      const corpus_document& document = set.documents[i];
      const stopwatch watch;
      const auto evaluation = judge.evaluate(document.text, set.tasks.at(document.task));
      seconds.push_back(watch.seconds());
      if (show) show_measurements(document, *evaluation);
      compile_ms.push_back(evaluation->getCompileMs());
      verify_ms.push_back(evaluation->getVerdict().getVerifyMs());
      for (const auto m : evaluation->getMeasurements()) measure_ms.push_back(m.getMeasureMs());
      if (evaluation->getOutcome() == Outcome::OK) {
        scores[i].push_back(evaluation->getMeasurements()[0].getScoreRaw());
        continue;
      }
      ++refused;
      std::fprintf(stderr, "%s/%s: %s: %s\n", document.task.c_str(), document.name.c_str(),
                   std::string(name_of(evaluation->getOutcome())).c_str(),
                   evaluation->getMessage().cStr());
    }
  }
  std::vector<double> spreads;
  for (const auto& of_one : scores) {
    if (of_one.size() > 1) spreads.push_back(spread(of_one));
  }
  report("honest.documents", static_cast<double>(set.documents.size()), "count");
  report("honest.evaluations", static_cast<double>(seconds.size()), "count");
  report("honest.refused", refused, "count");
  report("honest.evaluation_p50", median(seconds), "s");
  report("honest.evaluation_p99", quantile(seconds, 0.99), "s");
  report("honest.compile_p50", median(compile_ms), "ms");
  report("honest.verify_p50", median(verify_ms), "ms");
  report("honest.measure_p50", median(measure_ms), "ms");
  if (spreads.empty()) return;
  report("honest.score_spread_p50", 100 * median(spreads), "percent");
  report("honest.score_spread_p90", 100 * quantile(spreads, 0.9), "percent");
  report("honest.score_spread_worst", 100 * *std::max_element(spreads.begin(), spreads.end()),
         "percent");
}

// Judges the reference of `t` as its own candidate. A score's distance from 1 is the judge's error.
void measure_against_itself(testing_support::evaluator& judge, const task& t, int measurements) {
  const std::string document = "## Code Implementation\n```python\n" + t.reference + "\n```\n";
  std::vector<double> ratios;
  std::vector<double> errors;
  int within = 0;
  int refused = 0;
  for (int i = 0; i < measurements; ++i) {
    const auto evaluation = judge.evaluate(document, t);
    if (evaluation->getOutcome() != Outcome::OK) {
      ++refused;
      std::fprintf(stderr, "%s against itself: %s: %s\n", t.name.c_str(),
                   std::string(name_of(evaluation->getOutcome())).c_str(),
                   evaluation->getMessage().cStr());
      continue;
    }
    const double raw = evaluation->getMeasurements()[0].getScoreRaw();
    ratios.push_back(raw);
    errors.push_back(std::abs(raw - 1));
    within += std::abs(evaluation->getScore() - 1) <= 0.05 ? 1 : 0;
  }
  report("honest.aa_measurements", measurements, "count");
  report("honest.aa_within_5_percent", within, "count");
  report("honest.aa_refused", refused, "count");
  if (errors.empty()) return;
  report("honest.aa_median_ratio", median(ratios), "ratio");
  report("honest.aa_worst_error", 100 * *std::max_element(errors.begin(), errors.end()), "percent");
}

int run(int repetitions, int measurements, const std::string& filter,
        const std::filesystem::path& configs) {
  const reserved_core core = reserve_cores(1, false).front();
  const busy_core neighbor;
  const auto device = make_cpu_device({.core = core, .node = "benchmark"});
  testing_support::evaluator judge(*device);
  // Without a filter: the first document of every fourth file, which includes all tasks.
  auto set = testing_support::load_honest_set(configs, 1, filter.empty() ? 4 : 1);
  std::erase_if(set.documents, [&](const corpus_document& d) {
    return (d.task + "/" + d.name).find(filter) == std::string::npos;
  });
  if (repetitions > 0) judge_honest_set(judge, set, repetitions, !filter.empty());
  if (measurements > 0) measure_against_itself(judge, set.tasks.at("softmax"), measurements);
  return 0;
}

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  try {
    const auto number = [&](int at, int otherwise) {
      return argc > at ? std::atoi(argv[at]) : otherwise;
    };
    return hone::benchmark::run(number(1, 20), number(2, 200), argc > 3 ? argv[3] : "",
                                HONE_SOURCE_DIR "/configs");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "honest_benchmark: %s\n", e.what());
    return 1;
  }
}
