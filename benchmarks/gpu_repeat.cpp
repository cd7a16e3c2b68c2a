#include "benchmarks/gpu_modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gpu_device.hpp"
#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/report.hpp"

namespace hone::benchmark {

int repeat(const gpu_corpus& corpus, const std::string& file, int count) {
  std::map<std::string, judged> before;
  if (std::ifstream in(file); in) {
    judged one;
    for (std::string name; in >> one.raw >> one.reference_us >> one.candidate_us >> std::ws &&
                           std::getline(in, name);)
      before[name] = one;
  }
  const auto device = open_gpu();
  compiling_ahead compiled(corpus, *device, static_cast<std::size_t>(count));
  std::ofstream out(file);
  std::vector<double> differences;
  int not_ok = 0;
  for (int i = 0; i < count; ++i) {
    const auto one = compiled.next();
    const judged result = judge(*device, one);
    if (result.outcome != Outcome::OK) {
      ++not_ok;
      std::printf("%s: %s %s\n", one.name.c_str(), std::string(name_of(result.outcome)).c_str(),
                  result.message.c_str());
      continue;
    }
    out << result.raw << " " << result.reference_us << " " << result.candidate_us << " " << one.name
        << "\n";
    const auto known = before.find(one.name);
    if (known == before.end()) continue;
    const judged& first = known->second;
    differences.push_back(100 * std::abs(result.raw / first.raw - 1));
    std::printf(
        "%-50s %8.4f then %8.4f: %5.2f %%  (reference %8.2f then %8.2f us, candidate %8.2f then "
        "%8.2f us)\n",
        one.name.c_str(), first.raw, result.raw, differences.back(), first.reference_us,
        result.reference_us, first.candidate_us, result.candidate_us);
  }
  report("gpu.repeat_not_ok", not_ok, "");
  if (differences.empty()) return not_ok == 0 && before.empty() ? 0 : 1;
  report("gpu.repeat_scores", static_cast<double>(differences.size()), "");
  const double middle = median(differences);
  const double worst = *std::max_element(differences.begin(), differences.end());
  report("gpu.repeat_median", middle, "%");
  report("gpu.repeat_worst", worst, "%");
  return not_ok == 0 && middle <= 1 && worst <= 3 ? 0 : 1;
}

}  // namespace hone::benchmark
