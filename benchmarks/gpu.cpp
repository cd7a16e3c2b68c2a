// Measures the judge on the first GPU. The mode `compile` needs no GPU.
//   gpu_benchmark aa [PAIRS]
//       Judges the same program as reference and candidate, for kernels of 4 us to 5 ms. Shows how
//       far scores are from 1.00, and how far three clocks disagree: events, the host's clock and
//       CUPTI.
//   gpu_benchmark throughput [COUNT]
//       Counts variants of configs/gpu, of all tasks, that are verified and timed per hour. The
//       time includes one start of the device.
//   gpu_benchmark repeat FILE [COUNT]
//       Scores variants, compares the scores with those of an earlier start in FILE if FILE exists,
//       and writes them to FILE.
//   gpu_benchmark deaths [COUNT]
//       Judges COUNT programs that crash, hang or cause sticky errors, among honest programs.
//   gpu_benchmark memory [COUNT]
//       Shows the GPU's memory in use over COUNT verifications.
//   gpu_benchmark compile TASK DOCUMENT...
//       Shows which documents compile for Hopper.
// Exit code: 0 if all results are within their bounds, 1 if not or on an error, 2 on wrong usage.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/report.hpp"
#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cuda/cuda_device.hpp"
#include "evaluation/driver/cuda_driver.hpp"
#include "evaluation/driver/gpus.hpp"
#include "evaluation/evaluator.hpp"
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

// Opens the first GPU and reserves its launch core. Must be called before threads are started.
// Throws std::runtime_error if there is no GPU.
std::unique_ptr<device> open_gpu() {
  const auto gpus = find_gpus();
  if (gpus.empty()) throw std::runtime_error("there is no GPU");
  return make_cuda_device(gpus.front(),
                          {.node = "benchmark", .judge = {.launch_core = reserve_launch_core()}});
}

// Returns 0 if every score is 1.00 and no clocks differ by more than 2 %. Clocks are compared for
// calls of at least `shortest_compared_us`.
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

// Returns 0 if every document is ok.
int throughput(const gpu_corpus& corpus, int count) {
  const stopwatch watch;
  const auto device = open_gpu();
  const double start = watch.seconds();
  compiling_ahead compiled(corpus, *device, static_cast<std::size_t>(count));
  std::map<Outcome, int> outcomes;
  std::vector<double> verify_ms;
  std::vector<double> measure_ms;
  for (int i = 0; i < count; ++i) {
    const auto one = compiled.next();
    const stopwatch single;
    const judged result = judge(*device, one);
    ++outcomes[result.outcome];
    verify_ms.push_back(result.verify_ms);
    measure_ms.push_back(result.measure_ms);
    std::printf(
        "%-50s %-14s %6.2f  %9.2f us, busy %9.2f us, unseen %6.2f us  verify %7.1f ms  measure "
        "%7.1f ms  all %7.1f ms %s\n",
        one.name.c_str(), std::string(name_of(result.outcome)).c_str(), result.score,
        result.candidate_us, result.busy_us, result.unseen_us, result.verify_ms, result.measure_ms,
        single.seconds() * 1e3, result.outcome == Outcome::OK ? "" : result.message.c_str());
  }
  const double seconds = watch.seconds();
  report("gpu.start", start, "s");
  report("gpu.variants_an_hour", 3600.0 * count / seconds, "/h");
  report("gpu.verify_p50", median(verify_ms), "ms");
  report("gpu.measure_p50", median(measure_ms), "ms");
  report("gpu.not_ok", count - outcomes[Outcome::OK], "");
  return outcomes[Outcome::OK] == count ? 0 : 1;
}

// Writes one line per document to `file`: the unrounded score, the reference's and the candidate's
// time in us, the name. Returns 0 if every document is ok and scores differ from those that `file`
// had before by at most 1 % at the median and 3 % at worst.
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

// Judges programs that crash, hang or cause sticky errors, and honest programs between them.
// Reports whether verdicts and scores of the honest programs stay as they were before, and how long
// the verification after each death takes. Returns 0 if all honest programs are ok, their scores
// change by at most `most_change_percent`, and every planted program ends as `crash` or `timeout`.
int deaths(const gpu_corpus& corpus, int count) {
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
  constexpr std::size_t honest_programs = 8;
  constexpr double most_change_percent = 3;
  const auto device = open_gpu();
  variant_compiler compiler;
  const task scale = parse_task(scale_task, "scale");
  std::vector<compiled_document> honest;
  std::vector<double> alone;
  for (std::size_t i = 0; i < honest_programs; ++i) {
    honest.push_back(corpus.document(i * 7, *device));
    honest.back().result = compiler.compile(*honest.back().job, *honest.back().of, *device->type());
    const judged first = judge(*device, honest.back());
    if (first.outcome != Outcome::OK)
      throw std::runtime_error(honest.back().name + " ends as " +
                               std::string(name_of(first.outcome)) + " " + first.message +
                               " before anything has died");
    alone.push_back(first.raw);
  }
  std::vector<double> waits;
  int lost = 0;
  int misjudged = 0;
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    // Only one in twenty programs hangs, because a hang takes six seconds: the limit of two seconds
    // for a call, and four seconds in which the process may still report what failed.
    const auto& [name, body] =
        kinds[i % 20 == 19 ? kinds.size() - 1 : static_cast<std::size_t>(i) % (kinds.size() - 1)];
    const auto variant = make_variant(
        scale.id,
        "## Code Implementation\n```cuda\nextern \"C\" __global__ void k(const float* x, float* y) "
        "{ " +
            std::string(body) + " } // " + std::to_string(i) +
            "\n```\n```python\ndef forward(x: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n    "
            "launch(\"k\", [1], [1024], x, y)\n    return y\n```\n");
    compiled_document bad;
    bad.of = &scale;
    bad.job = make_compile_job(*variant, device->type()->getName().cStr());
    bad.result = compiler.compile(*bad.job, scale, *device->type());
    const judged fate = judge(*device, bad);
    if (fate.outcome != Outcome::CRASH && fate.outcome != Outcome::TIMEOUT) {
      ++misjudged;
      std::printf("%s ended as %s %s\n", name, std::string(name_of(fate.outcome)).c_str(),
                  fate.message.c_str());
    }
    const compiled_document& next = honest[static_cast<std::size_t>(i) % honest_programs];
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
      worst = std::max(
          worst,
          100 * std::abs(again.raw / alone[static_cast<std::size_t>(i) % honest_programs] - 1));
    }
  }
  report("gpu.deaths", count, "");
  report("gpu.deaths_misjudged", misjudged, "");
  report("gpu.honest_lost", lost, "");
  report("gpu.honest_worst_change", worst, "%");
  report("gpu.next_verdict_p50", median(waits), "ms");
  report("gpu.next_verdict_p95", quantile(waits, 0.95), "ms");
  report("gpu.next_verdict_worst", *std::max_element(waits.begin(), waits.end()), "ms");
  return lost == 0 && misjudged == 0 && worst <= most_change_percent ? 0 : 1;
}

// Reports the GPU's memory in use while documents are verified over and over and one verification
// in eight is followed by a measurement. Returns 0 if memory grows by at most `most_growth_mib`
// after the first half and all documents end as `ok` or `unstable`.
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
  constexpr double most_growth_mib = 64;  // from the largest of the first half to the end
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
  return refused == 0 && in_use_mib.back() - before <= most_growth_mib ? 0 : 1;
}

// Compiles the host programs and cuda blocks of documents for Hopper, without a GPU. `files` are a
// task file and `count - 1` documents. Returns 0 if all compile.
int compile(int count, char** files) {
  const task t = load_task(files[0]);
  variant_compiler compiler;
  record_builder<schema::DeviceType> type;
  type->setName("sm_90a");
  type->setKind(schema::DeviceType::Kind::CUDA);
  type->setTarget("sm_90a");
  const auto hopper = type.finish();
  int refused = 0;
  for (int i = 1; i < count; ++i) {
    std::ifstream in(files[i]);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (text.starts_with("task: ")) text.erase(0, text.find('\n') + 1);
    const auto variant = make_variant(t.id, text);
    std::string problem = variant->getProblem().cStr();
    if (problem.empty()) {
      const auto compiled = compiler.compile(*make_compile_job(*variant, "sm_90a"), t, *hopper);
      if (!compiled)
        problem =
            std::string(name_of(compiled.error().outcome)) + ": " + compiled.error().message;
    }
    refused += problem.empty() ? 0 : 1;
    std::printf("%s: %s\n", files[i], problem.empty() ? "compiles" : problem.c_str());
  }
  return refused > 0 ? 1 : 0;
}

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  using namespace hone::benchmark;
  // Output goes out line by line, so that it is complete up to a forced end.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    const char* configs = std::getenv("HONE_CONFIGS");
    const auto corpus = [&] {
      return gpu_corpus(configs != nullptr ? configs : HONE_SOURCE_DIR "/configs");
    };
    const auto count = [&](int otherwise) { return argc > 2 ? std::atoi(argv[2]) : otherwise; };
    if (mode == "aa") return aa(count(500));
    if (mode == "throughput") return throughput(corpus(), count(200));
    if (mode == "deaths") return deaths(corpus(), count(200));
    if (mode == "memory") return memory(corpus(), count(2000));
    if (mode == "repeat" && argc > 2)
      return repeat(corpus(), argv[2], argc > 3 ? std::atoi(argv[3]) : 50);
    if (mode == "compile" && argc > 3) return compile(argc - 2, argv + 2);
    std::fputs(
        "usage: gpu_benchmark aa [PAIRS] | throughput [COUNT] | repeat FILE [COUNT] | deaths "
        "[COUNT] | memory [COUNT] | compile TASK DOCUMENT...\n",
        stderr);
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_benchmark: %s\n", e.what());
    return 1;
  }
}
