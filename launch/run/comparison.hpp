#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

// One sample of a comparison: a completion that was judged afresh.
struct compared_sample {
  bool ok = false;
  double score = 0;
};

struct compared_task {
  std::string task;
  std::vector<compared_sample> before;
  std::vector<compared_sample> after;
};

struct comparison_result {
  struct row {
    std::string task;
    double before = 0;  // mean log speed-up
    double after = 0;
    double before_ok = 0;  // share
    double after_ok = 0;
  };
  std::vector<row> tasks;
  double before = 0;  // mean over tasks
  double after = 0;
  double difference = 0;
  double low = 0;  // 95 % bootstrap interval of the difference
  double high = 0;
  bool excludes_zero() const { return low > 0 || high < 0; }
};

// Mean per-task log speed-up before and after. A sample that is not ok counts as the smaller of 1
// and the lowest ok score among its task's samples. The interval resamples tasks, and samples
// within each (percentile bootstrap, Efron and Tibshirani 1993, chapter 13).
comparison_result compare_policies(const std::vector<compared_task>& tasks, std::size_t resamples,
                                   std::uint64_t seed);

}  // namespace hone
