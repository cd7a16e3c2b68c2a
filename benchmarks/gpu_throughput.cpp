#include "benchmarks/gpu_modes.hpp"

#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/gpu_device.hpp"
#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/report.hpp"

namespace hone::benchmark {

int throughput(const gpu_corpus& corpus, int count) {
  stopwatch watch;
  const auto device = open_gpu();
  report("gpu.start", watch.seconds(), "s");
  compiling_ahead compiled(corpus, *device, 2 * static_cast<std::size_t>(count));
  int not_ok = 0;
  std::vector<double> verify_ms;
  std::vector<double> measure_ms;
  // In the second pass, the judge knows the tasks.
  for (const char* pass : {"first", "second"}) {
    for (int i = 0; i < count; ++i) {
      const auto one = compiled.next();
      const stopwatch single;
      const judged result = judge(*device, one);
      not_ok += result.outcome == Outcome::OK ? 0 : 1;
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
    report("gpu.variants_an_hour_" + std::string(pass), 3600.0 * count / watch.seconds(), "/h");
    watch = stopwatch();
  }
  report("gpu.verify_p50", median(verify_ms), "ms");
  report("gpu.measure_p50", median(measure_ms), "ms");
  report("gpu.not_ok", not_ok, "");
  return not_ok == 0 ? 0 : 1;
}

}  // namespace hone::benchmark
