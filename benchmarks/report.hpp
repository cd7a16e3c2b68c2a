#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace hone::benchmark {

// Prints a number to standard output as one line "NAME VALUE UNIT", the format of scripts/bench,
// and flushes it.
inline void report(const std::string& name, double value, const std::string& unit) {
  std::printf("%s %.6g %s\n", name.c_str(), value, unit.c_str());
  std::fflush(stdout);
}

// Measures wall-clock time from its construction, by the steady clock.
class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Returns the sample at rank `share` (0 to 1) of the sorted samples. `samples` must not be empty.
inline double quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  return samples[std::min(samples.size() - 1,
                          static_cast<std::size_t>(share * static_cast<double>(samples.size())))];
}

// Returns the upper median. `samples` must not be empty.
inline double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }

}  // namespace hone::benchmark
