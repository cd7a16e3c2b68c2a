// Measures how many variants per second the ring carries when sampling and judging cost nothing,
// and the resident memory of its process on the way. Runs `hone run configs/ring.toml`, which has a
// scripted policy, simulated devices of three types and the durable pool:
//   ring_benchmark [STEPS]
// STEPS is the number of training steps (default 100), of 2,048 variants each.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "benchmarks/processes.hpp"
#include "benchmarks/report.hpp"

namespace hone::benchmark {
namespace {

struct progress {
  double seconds = 0;   // from the first version to the newest
  double variants = 0;  // trained on so far
};

// Reads a run's metrics.jsonl. Ignores a last line that is not complete yet; returns zeros if there
// is no file.
progress read_progress(const std::filesystem::path& metrics) {
  progress p;
  std::ifstream in(metrics);
  double first = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto step = nlohmann::json::parse(line);
    const double at = step["time_ms"].get<double>() / 1e3;
    if (first == 0) first = at;
    p.seconds = at - first;
    p.variants += step.value("samples", 0.0);
  }
  return p;
}

// Starts a program with its standard output discarded. `command` holds its path and arguments.
// Throws std::runtime_error if it cannot be started.
pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  if (posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ) != 0)
    throw std::runtime_error(command[0] + " cannot be started");
  posix_spawn_file_actions_destroy(&files);
  return child;
}

int measure(int steps) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto folder =
      std::filesystem::temp_directory_path() / ("hone-ring-" + std::to_string(getpid()));
  const pid_t run = start({(here.parent_path() / "hone").string(), "run",
                           std::string(HONE_SOURCE_DIR) + "/configs/ring.toml", "--dir",
                           folder.string(), "--set", "contrastive.steps=" + std::to_string(steps)});
  std::vector<std::pair<double, double>> memory;  // variants trained on so far, resident megabytes
  int status = 0;
  while (waitpid(run, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    memory.emplace_back(read_progress(folder / "metrics.jsonl").variants, memory_mb(run));
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
