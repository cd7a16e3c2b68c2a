// Measures the judge on the first GPU. The mode `compile` needs no GPU.
//   gpu_benchmark aa [PAIRS]
//       Judges the same program as reference and candidate, for kernels of 4 us to 5 ms. Shows how
//       far scores are from 1.00, and how far three clocks disagree: events, the host's clock and
//       CUPTI.
//   gpu_benchmark throughput [COUNT]
//       Counts variants of configs/gpu, of all tasks, that are verified and timed per hour: COUNT
//       with the start of the device, as many again of the tasks that it then knows, and these
//       screened, with the rank correlation of both scores.
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

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "benchmarks/gpu_documents.hpp"
#include "benchmarks/gpu_modes.hpp"

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
