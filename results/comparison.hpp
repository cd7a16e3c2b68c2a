#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

// The speed-up that a sample counts as which is not ok: that of a program four times as slow as the
// reference. A fixed value makes runs and tasks comparable.
inline constexpr double failed_speedup = 0.25;
// Speed-ups below this count as this, so that every logarithm is finite.
inline constexpr double min_speedup = 1e-6;

// Returns the natural logarithm of the speed-up that a sample counts as.
double log_speedup(bool is_ok, double score);

// One sample of a comparison: a completion that was judged afresh. Samples whose outcome says
// nothing of the variant (is_inconclusive()) are left out beforehand.
struct compared_sample {
  bool is_ok = false;
  double score = 0;      // speed-up if ok
  bool is_copy = false;  // its program is an exemplar that its prompt shows
  bool is_new = false;   // nothing before in the run held its program, nor did the corpus
};

// The samples of one task by the policies before and after the contrastive stage.
struct compared_task {
  std::string task;
  std::vector<compared_sample> before;
  std::vector<compared_sample> after;
};

// What one policy's samples of one task, or of several, amount to. Logarithms are natural. Over
// several tasks, each number is the mean of the tasks', which all weigh the same.
struct policy_summary {
  double ok = 0;          // share of the samples that are ok
  double solved = 0;      // share of the tasks with a sample that is ok
  double log_of_ok = 0;   // mean log speed-up of the ok samples; 0 without any
  double log_score = 0;   // mean log speed-up of all samples; see log_speedup()
  double log_best = 0;    // log speed-up of the best sample, at least that of failed_speedup
  double new_share = 0;   // share of the samples that are ok and new
  double copy_share = 0;  // share of the samples that copy an exemplar
};
policy_summary summarize_samples(const std::vector<compared_sample>& samples);
policy_summary mean_of(const std::vector<policy_summary>& tasks);

// "Before" and "after" refer to the contrastive stage.
struct comparison_result {
  struct row {
    std::string task;
    policy_summary before;
    policy_summary after;
  };
  std::vector<row> tasks;
  policy_summary before;
  policy_summary after;
  double difference = 0;  // of log_score, after - before
  double low = 0;         // lower end of the 95 % bootstrap interval of the difference
  double high = 0;        // upper end of that interval
};

// Compares two policies by the mean over tasks of each task's mean log speed-up, log_score. The
// interval resamples tasks, and samples within each task, `resamples` times (percentile bootstrap,
// Efron and Tibshirani 1993, chapter 13). Leaves out tasks that lack samples of either policy;
// without any task, all numbers are 0.
comparison_result compare_policies(const std::vector<compared_task>& tasks, std::size_t resamples,
                                   std::uint64_t seed);

// Return the samples, or the tasks, without the samples that copy an exemplar.
std::vector<compared_sample> without_copies(std::vector<compared_sample> samples);
std::vector<compared_task> without_copies(std::vector<compared_task> tasks);

}  // namespace hone
