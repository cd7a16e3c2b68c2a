#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu_device.hpp"
#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/gpu_modes.hpp"
#include "benchmarks/report.hpp"
#include "evaluation/variant_compiler.hpp"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone::benchmark {
namespace {

const char* const scale_task = R"(
name = "scale"
summary = "y = 2 x"
reference = '''
def forward(x: Tensor) -> Tensor:
    return x * 2.0
'''
[[input]]
name = "x"
shape = ["N"]
[[case]]
sizes = { N = 65536 }
timed = true
)";

// The kinds of planted programs: a name, and the body of a kernel k(const float* x, float* y) for
// the task `scale`.
constexpr std::array<std::pair<const char*, const char*>, 7> kinds = {
    {{"null pointer", "float* p = nullptr; *p = 1;"},
     {"far away", "y[1ll << 40] = 1;"},
     {"trap", "asm volatile(\"trap;\");"},
     {"misaligned", "*(double*)((char*)y + 1) = 1;"},
     {"assertion", "y[0] = x[0]; __trap();"},
     {"trap when timed",
      "static int calls; for (int i = threadIdx.x; i < 65536; i += blockDim.x) y[i] = 2 * x[i]; "
      "if (threadIdx.x == 0 && atomicAdd(&calls, 1) > 100) __trap();"},
     {"hang", "while (true) asm volatile(\"nanosleep.u32 1000;\");"}}};

// Returns the kind of planted program i. Only one in twenty programs hangs, because a hang takes
// six seconds: the limit of two seconds for a call, and four seconds in which the process may still
// report what failed.
const std::pair<const char*, const char*>& kind_of(int i) {
  return kinds[i % 20 == 19 ? kinds.size() - 1 : static_cast<std::size_t>(i) % (kinds.size() - 1)];
}

// Returns planted program i, compiled. Its text contains `i`, so that no cache holds it.
compiled_document plant(int i, const task& scale, variant_compiler& compiler, const device& on) {
  const auto variant = make_variant(
      scale.id,
      "## Code Implementation\n```cuda\nextern \"C\" __global__ void k(const float* x, float* y) "
      "{ " +
          std::string(kind_of(i).second) + " } // " + std::to_string(i) +
          "\n```\n```python\ndef forward(x: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n    "
          "launch(\"k\", [1], [1024], x, y)\n    return y\n```\n");
  compiled_document bad;
  bad.of = &scale;
  bad.job = make_compile_job(*variant, on.type()->getName().cStr());
  bad.result = compiler.compile(*bad.job, scale, *on.type());
  return bad;
}

// An honest program, compiled, with its unrounded score before any program died.
struct honest_program {
  compiled_document document;
  double alone = 0;
};

// Compiles and judges eight documents of the corpus. Throws std::runtime_error if one is not ok.
std::vector<honest_program> judge_alone(const gpu_corpus& corpus, variant_compiler& compiler,
                                        device& on) {
  constexpr std::size_t honest_programs = 8;
  std::vector<honest_program> honest;
  for (std::size_t i = 0; i < honest_programs; ++i) {
    compiled_document one = corpus.document(i * 7, on);
    one.result = compiler.compile(*one.job, *one.of, *on.type());
    const judged first = judge(on, one);
    if (first.outcome != Outcome::OK)
      throw std::runtime_error(one.name + " ends as " + std::string(name_of(first.outcome)) + " " +
                               first.message + " before anything has died");
    honest.push_back({std::move(one), first.raw});
  }
  return honest;
}

}  // namespace

int deaths(const gpu_corpus& corpus, int count) {
  constexpr double max_change_percent = 3;
  const auto device = open_gpu();
  variant_compiler compiler;
  const task scale = parse_task(scale_task, "scale");
  const std::vector<honest_program> honest = judge_alone(corpus, compiler, *device);
  std::vector<double> waits;
  int lost = 0;
  int misjudged = 0;
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const judged fate = judge(*device, plant(i, scale, compiler, *device));
    if (fate.outcome != Outcome::CRASH && fate.outcome != Outcome::TIMEOUT) {
      ++misjudged;
      std::printf("%s ended as %s %s\n", kind_of(i).first,
                  std::string(name_of(fate.outcome)).c_str(), fate.message.c_str());
    }
    const auto& [next, alone] = honest[static_cast<std::size_t>(i) % honest.size()];
    const stopwatch watch;
    lost += verified(*device, next).outcome == Outcome::OK ? 0 : 1;
    waits.push_back(watch.seconds() * 1e3);
    if (i % 5 != 0) continue;
    const judged again = judge(*device, next);
    if (again.outcome != Outcome::OK) {
      ++lost;
      std::printf("%s ended as %s %s\n", next.name.c_str(),
                  std::string(name_of(again.outcome)).c_str(), again.message.c_str());
    } else {
      worst = std::max(worst, 100 * std::abs(again.raw / alone - 1));
    }
  }
  report("gpu.deaths", count, "");
  report("gpu.deaths_misjudged", misjudged, "");
  report("gpu.honest_lost", lost, "");
  report("gpu.honest_worst_change", worst, "%");
  report("gpu.next_verdict_p50", median(waits), "ms");
  report("gpu.next_verdict_p95", quantile(waits, 0.95), "ms");
  report("gpu.next_verdict_worst", *std::max_element(waits.begin(), waits.end()), "ms");
  return lost == 0 && misjudged == 0 && worst <= max_change_percent ? 0 : 1;
}

}  // namespace hone::benchmark
