#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/bench/bench_results.hpp"

namespace hone {

// Results of a benchmark for one group of tasks on one device type. Tasks without a result do not
// count. Of each other task, the best document
// counts: the ok one with the highest speed-up. Speed-ups are against the eager reference, or
// against another baseline that was timed with it.
struct bench_summary {
  std::string device_type;
  std::string group;  // "all" for all tasks
  std::size_t tasks = 0;
  std::size_t left_out = 0;  // tasks without a result
  std::size_t documents = 0;
  std::size_t correct = 0;                      // tasks with an ok document
  std::map<std::string, std::size_t> outcomes;  // documents by outcome
  struct column {
    std::size_t tasks = 0;  // correct tasks for which the baseline was timed
    double geometric_mean = 0;
    double median = 0;
    // fast_p of KernelBench (arXiv 2502.10517): the share of all tasks that have a correct document
    // with a speed-up above p, by p.
    std::map<double, double> fast;
  };
  std::map<std::string, column> against;  // by baseline
};

// Summarizes each group of each device type, and all groups of a device type as "all".
std::vector<bench_summary> summarize(const std::vector<bench_result>& results);

// Return the results and the summaries as CSV and as Markdown.
std::string print_csv(const std::vector<bench_result>& results);
std::string print_markdown(const std::vector<bench_result>& results);

}  // namespace hone
