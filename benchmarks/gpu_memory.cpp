#include "benchmarks/gpu_modes.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/gpu_device.hpp"
#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/report.hpp"
#include "cuda/cuda_driver.hpp"
#include "evaluation/variant_compiler.hpp"

namespace hone::benchmark {

int memory(const gpu_corpus& corpus, int count) {
  constexpr int timed_one_in = 8;
  const auto device = open_gpu();
  const cuda_driver& driver = cuda_driver::get();
  variant_compiler compiler;
  std::vector<compiled_document> all;
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    all.push_back(corpus.document(i, *device));
    all.back().result = compiler.compile(*all.back().job, *all.back().of, *device->type());
    if (!all.back().result) all.pop_back();
  }
  constexpr double max_growth_mib = 64;  // from the largest of the first half to the end
  int not_ok = 0;
  int refused = 0;
  std::vector<double> in_use_mib;
  for (int i = 0; i <= count; ++i) {
    if (i % std::max(1, count / 10) == 0) {
      std::size_t left = 0;
      std::size_t total = 0;
      driver.check(driver.cuMemGetInfo(&left, &total), "measuring memory");
      in_use_mib.push_back(static_cast<double>(total - left) / (1 << 20));
      report("gpu.memory_in_use_after_" + std::to_string(i), in_use_mib.back(), "MiB");
    }
    const compiled_document& one = all[static_cast<std::size_t>(i) % all.size()];
    const bool is_timed = i % timed_one_in == 0;
    const judged result = is_timed ? judge(*device, one) : verified(*device, one);
    if (result.outcome == Outcome::OK) continue;
    ++not_ok;
    refused += result.outcome == Outcome::UNSTABLE ? 0 : 1;
    std::printf("%s %s as %s %s\n", one.name.c_str(), is_timed ? "was timed and ended" : "ended",
                std::string(name_of(result.outcome)).c_str(), result.message.c_str());
  }
  report("gpu.memory_not_ok", not_ok, "");
  const double before = *std::max_element(
      in_use_mib.begin(),
      in_use_mib.begin() + static_cast<std::ptrdiff_t>((in_use_mib.size() + 1) / 2));
  return refused == 0 && in_use_mib.back() - before <= max_growth_mib ? 0 : 1;
}

}  // namespace hone::benchmark
