#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

// A `hone run` that runs at the same time as the benchmark.
namespace hone::benchmark {

// Returns the program that was built with this one.
inline std::string hone_program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "hone")
      .string();
}

// Forks a process that ends with this one. Throws std::runtime_error.
inline pid_t fork_child() {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return child;
}

// Starts hone with these arguments and its standard output discarded, in a process that ends with
// this one. Its exit code is 127 if there is no such program. Throws std::runtime_error.
inline pid_t start_hone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), hone_program());
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = fork_child();
  if (child > 0) return child;
  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  execv(words[0], words.data());
  _exit(127);
}

struct progress {
  double seconds = 0;   // from the first version to the newest
  double variants = 0;  // trained on so far
};

// Reads a run's metrics.jsonl. Ignores a last line that is not complete yet; returns zeros if there
// is no file.
inline progress read_progress(const std::filesystem::path& metrics) {
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

}  // namespace hone::benchmark
