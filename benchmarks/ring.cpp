// Measures how many variants per second the ring carries when sampling and judging cost nothing,
// and the resident memory of its process on the way. Runs `hone run configs/ring.toml`, which has a
// scripted policy, simulated devices of three types and the durable pool:
//   ring_benchmark [STEPS]
// STEPS is the number of training steps (default 100), of 2,048 variants each.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "benchmarks/hone_run.hpp"
#include "benchmarks/processes.hpp"
#include "benchmarks/report.hpp"

namespace hone::benchmark {
namespace {

int measure(int steps) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("hone-ring-" + std::to_string(getpid()));
  const pid_t run =
      start_hone({"run", std::string(HONE_SOURCE_DIR) + "/configs/ring.toml", "--dir",
                  folder.string(), "--set", "contrastive.steps=" + std::to_string(steps)});
  std::vector<std::pair<double, double>> memory;  // variants trained on so far, resident megabytes
  int status = 0;
  while (waitpid(run, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    memory.emplace_back(read_progress(folder / "metrics.jsonl").variants,
                        resident_bytes(run) / 1e6);
  }
  const progress all = read_progress(folder / "metrics.jsonl");
  std::filesystem::remove_all(folder);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("hone run failed");
  report("ring.variants", all.variants, "count");
  report("ring.rate", all.variants / all.seconds, "variants/s");
  // The last sample is left out because the process may already have been ending.
  for (const double share : {0.25, 0.5, 0.75, 0.95}) {
    const auto at = std::find_if(memory.begin(), memory.end(),
                                 [&](const auto& m) { return m.first >= share * all.variants; });
    if (at != memory.end())
      report("ring.memory_at_" + std::to_string(static_cast<int>(100 * share)) + "_percent",
             at->second, "MB");
  }
  return 0;
}

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  try {
    return hone::benchmark::measure(argc > 1 ? std::atoi(argv[1]) : 100);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ring_benchmark: %s\n", e.what());
    return 1;
  }
}
