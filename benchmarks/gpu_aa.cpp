#include "benchmarks/gpu_modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gpu_device.hpp"
#include "benchmarks/report.hpp"
#include "evaluation/backends/device.hpp"
#include "messages/ids.hpp"
#include "tasks/task_file.hpp"

namespace hone::benchmark {
namespace {

// A program of one or a few kernels that is timed against itself.
struct program {
  std::string name;
  std::string body;    // the expression that forward() returns
  std::string inputs;  // [[input]] tables of the task file: x, or x and y
  std::string sizes;   // of the only case, as an inline table of the task file
};

// Returns one [[input]] table of a task file. `shape` is a TOML array.
std::string input(const std::string& name, const std::string& shape,
                  const std::string& dtype = "float32") {
  return "[[input]]\nname = \"" + name + "\"\nshape = " + shape + "\ndtype = \"" + dtype + "\"\n";
}

// Returns programs whose calls take 4 us to 5 ms.
std::vector<program> aa_programs() {
  std::vector<program> all;
  for (const char* n : {"4096", "65536", "1048576", "16777216", "67108864", "268435456"})
    all.push_back({std::string("relu_") + n, "torch.relu(x)", input("x", "[\"N\"]"),
                   std::string("{ N = ") + n + " }"});
  for (const char* n : {"256", "1024", "2048", "4096", "5120"}) {
    all.push_back({std::string("matmul_") + n, "torch.matmul(x, y)",
                   input("x", "[\"N\", \"N\"]") + input("y", "[\"N\", \"N\"]"),
                   std::string("{ N = ") + n + " }"});
  }
  for (const char* n : {"1024", "4096", "16384"})
    all.push_back({std::string("softmax_") + n, "torch.softmax(x, 1)", input("x", "[\"N\", 4096]"),
                   std::string("{ N = ") + n + " }"});
  for (const char* n : {"1024", "8192", "32768"})
    all.push_back({std::string("chain_") + n, "torch.tanh(x * 2.0 + 1.0).sum(1)",
                   input("x", "[\"N\", 2048]"), std::string("{ N = ") + n + " }"});
  all.push_back({"half_matmul_4096", "torch.matmul(x, y)",
                 input("x", "[\"N\", \"N\"]", "float16") + input("y", "[\"N\", \"N\"]", "float16"),
                 "{ N = 4096 }"});
  return all;
}

// Returns the source of forward(), both of the reference and of the candidate.
std::string forward(const program& p) {
  const bool two = p.inputs.find("\"y\"") != std::string::npos;
  return std::string("def forward(x: Tensor") + (two ? ", y: Tensor" : "") +
         ") -> Tensor:\n    return " + p.body + "\n";
}

task task_of(const program& p) {
  return parse_task("name = \"" + p.name + "\"\nsummary = \"" + p.name + "\"\nreference = '''\n" +
                        forward(p) + "'''\n" + p.inputs + "[[case]]\nsizes = " + p.sizes +
                        "\ntimed = true\n",
                    p.name);
}

// Returns a job with the reference as candidate, without a verification before it.
record<schema::BenchmarkJob> job_of(const program& p, const device& on) {
  record_builder<schema::BenchmarkJob> job;
  auto header = job->initHeader();
  random_id<measurement_id>().store(header.initMeasurementId());
  random_id<variant_id>().store(header.initVariantId());
  random_id<task_id>().store(header.initTaskId());
  header.setDeviceType(on.type()->getName());
  auto artifact = job->initArtifact();
  random_id<artifact_id>().store(artifact.initId());
  random_id<variant_id>().store(artifact.initVariantId());
  artifact.setDeviceType(on.type()->getName());
  artifact.setPython(forward(p));
  job->initVerdict();
  return job.finish();
}

}  // namespace

int aa(int pairs) {
  const auto device = open_gpu();
  const auto programs = aa_programs();
  std::map<std::string, std::vector<double>> raw;
  constexpr double shortest_compared_us = 10;
  // Per cent by which a burst's clocks differ: the larger of events against the host's clock and,
  // in the traced burst, events against CUPTI.
  std::vector<double> clocks_apart;
  std::vector<double> unseen;  // us
  int off = 0;
  int unstable = 0;
  for (int i = 0; i < pairs; ++i) {
    const program& p = programs[static_cast<std::size_t>(i) % programs.size()];
    const stopwatch watch;
    const auto m = device->measure(*job_of(p, *device), task_of(p), 0);
    if (m->getOutcome() != Outcome::OK) {
      ++unstable;
      std::printf("%s: %s %s\n", p.name.c_str(), std::string(name_of(m->getOutcome())).c_str(),
                  m->getMessage().cStr());
      continue;
    }
    const auto c = m->getCases()[0];
    if (m->getScore() != 1.0) ++off;
    if (c.getCandidateUs() >= shortest_compared_us) {
      const auto apart = [](double a, double b) { return std::abs(a / b - 1); };
      clocks_apart.push_back(100 * std::max(apart(c.getBurstUs(), c.getCandidateWallUs()),
                                            apart(c.getTracedUs(), c.getBurstSpanUs())));
    }
    unseen.push_back(std::abs(c.getUnseenUs()));
    raw[p.name].push_back(m->getScoreRaw());
    if (i < 3 * static_cast<int>(programs.size()) || m->getScore() != 1.0) {
      std::printf(
          "%-20s %9.2f us  score %.2f raw %.4f [%.4f, %.4f] rounds %4u  burst %9.2f wall %9.2f "
          "traced %9.2f span %9.2f unseen %5.2f  %6.0f ms\n",
          p.name.c_str(), c.getCandidateUs(), m->getScore(), m->getScoreRaw(), c.getIntervalLow(),
          c.getIntervalHigh(), c.getRounds(), c.getBurstUs(), c.getCandidateWallUs(),
          c.getTracedUs(), c.getBurstSpanUs(), c.getUnseenUs(), watch.seconds() * 1e3);
    }
  }
  double worst = 0;
  for (const auto& [name, scores] : raw) {
    for (const double score : scores) worst = std::max(worst, std::abs(std::log(score)));
  }
  report("gpu.aa_pairs", pairs, "");
  report("gpu.aa_not_one", off, "");
  report("gpu.aa_not_ok", unstable, "");
  report("gpu.aa_worst_raw", 100 * std::expm1(worst), "%");
  report("gpu.clocks_compared", static_cast<double>(clocks_apart.size()), "");
  const auto beyond = std::count_if(clocks_apart.begin(), clocks_apart.end(),
                                    [](double percent) { return percent > 2; });
  report("gpu.clocks_beyond_2_percent", static_cast<double>(beyond), "");
  if (!clocks_apart.empty())
    report("gpu.clocks_worst", *std::max_element(clocks_apart.begin(), clocks_apart.end()), "%");
  if (!unseen.empty()) report("gpu.unseen_p50", median(unseen), "us");
  if (!unseen.empty())
    report("gpu.unseen_worst", *std::max_element(unseen.begin(), unseen.end()), "us");
  return off == 0 && unstable == 0 && beyond == 0 ? 0 : 1;
}

}  // namespace hone::benchmark
