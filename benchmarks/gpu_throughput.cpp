#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/gpu_device.hpp"
#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/gpu_modes.hpp"
#include "benchmarks/report.hpp"

namespace hone::benchmark {
namespace {

struct pass {
  const char* name;
  bool is_screening;
};
// From the second pass on, the judge knows the tasks.
constexpr pass passes[] = {{"first", false}, {"second", false}, {"screened", true}};

// Returns the rank of each value, from 0.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
  std::vector<double> found(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) found[order[i]] = static_cast<double>(i);
  return found;
}

// Returns Spearman's rank correlation of two lists without equal values.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto of_a = ranks(a);
  const auto of_b = ranks(b);
  const auto n = static_cast<double>(a.size());
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (of_a[i] - of_b[i]) * (of_a[i] - of_b[i]);
  return 1 - 6 * squares / (n * (n * n - 1));
}

void report_agreement(const std::map<std::string, std::map<std::string, double>>& scores) {
  std::vector<double> full;
  std::vector<double> screened;
  std::vector<double> differences;
  for (const auto& [name, by_pass] : scores) {
    if (!by_pass.contains("second") || !by_pass.contains("screened")) continue;
    full.push_back(by_pass.at("second"));
    screened.push_back(by_pass.at("screened"));
    differences.push_back(100 * std::abs(screened.back() / full.back() - 1));
  }
  if (full.size() < 2) return;
  report("gpu.screened_rank_correlation", rank_correlation(full, screened), "");
  report("gpu.screened_difference_p50", median(differences), "%");
  report("gpu.screened_difference_worst", *std::max_element(differences.begin(), differences.end()),
         "%");
}

}  // namespace

int throughput(const gpu_corpus& corpus, int count) {
  stopwatch watch;
  const auto device = open_gpu();
  report("gpu.start", watch.seconds(), "s");
  compiling_ahead compiled(corpus, *device, std::size(passes) * static_cast<std::size_t>(count));
  int not_ok = 0;
  std::map<std::string, std::map<std::string, double>> scores;  // by document and pass
  for (const auto& [pass, is_screening] : passes) {
    std::vector<double> verify_ms;
    std::vector<double> measure_ms;
    for (int i = 0; i < count; ++i) {
      const auto one = compiled.next();
      const stopwatch single;
      const judged result = judge(*device, one, is_screening);
      not_ok += result.outcome == Outcome::OK ? 0 : 1;
      if (result.outcome == Outcome::OK) scores[one.name][pass] = result.raw;
      verify_ms.push_back(result.verify_ms);
      measure_ms.push_back(result.measure_ms);
      std::printf(
          "%-50s %-14s %6.2f  %9.2f us, busy %9.2f us, unseen %6.2f us  verify %7.1f ms  measure "
          "%7.1f ms  all %7.1f ms %s\n",
          one.name.c_str(), std::string(name_of(result.outcome)).c_str(), result.score,
          result.candidate_us, result.busy_us, result.unseen_us, result.verify_ms,
          result.measure_ms, single.seconds() * 1e3,
          result.outcome == Outcome::OK ? "" : result.message.c_str());
    }
    const std::string suffix = std::string("_") + pass;
    report("gpu.variants_an_hour" + suffix, 3600.0 * count / watch.seconds(), "/h");
    report("gpu.verify_p50" + suffix, median(verify_ms), "ms");
    report("gpu.measure_p50" + suffix, median(measure_ms), "ms");
    watch = stopwatch();
  }
  report_agreement(scores);
  report("gpu.not_ok", not_ok, "");
  return not_ok == 0 ? 0 : 1;
}

}  // namespace hone::benchmark
