#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

// One sample of a comparison: a completion that was judged afresh.
struct compared_sample {
  bool ok = false;
  double score = 0;  // speed-up if ok
};

// The samples of one task by the policies before and after the contrastive stage.
struct compared_task {
  std::string task;
  std::vector<compared_sample> before;
  std::vector<compared_sample> after;
};

// "Before" and "after" refer to the contrastive stage. Logarithms are natural.
struct comparison_result {
  struct row {
    std::string task;
    double failed = 0;     // speed-up that a sample counts as which is not ok
    double before = 0;     // mean log speed-up of the samples before
    double after = 0;      // mean log speed-up of the samples after
    double before_ok = 0;  // share of ok samples before
    double after_ok = 0;   // share of ok samples after
  };
  std::vector<row> tasks;
  double before = 0;      // mean of the rows' `before`
  double after = 0;       // mean of the rows' `after`
  double before_ok = 0;   // mean of the rows' `before_ok`
  double after_ok = 0;    // mean of the rows' `after_ok`
  double difference = 0;  // after - before
  double low = 0;         // lower end of the 95 % bootstrap interval of the difference
  double high = 0;        // upper end of that interval
  bool excludes_zero() const { return low > 0 || high < 0; }
};

// Compares two policies by the mean over tasks of each task's mean log speed-up. A sample that is
// not ok counts as the smaller of 1 and the lowest ok score among its task's samples. The interval
// resamples tasks, and samples within each task, `resamples` times (percentile bootstrap, Efron and
// Tibshirani 1993, chapter 13). Leaves out tasks that lack samples of either policy; without any
// task, all numbers are 0.
comparison_result compare_policies(const std::vector<compared_task>& tasks, std::size_t resamples,
                                   std::uint64_t seed);

}  // namespace hone
