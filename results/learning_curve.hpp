#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/run_results.hpp"

namespace hone {

// The samples that consecutive versions of the policy wrote while it learned.
struct learning_point {
  std::string stage;
  std::uint64_t first_version = 0;
  std::uint64_t last_version = 0;
  double samples = 0;
  double mean_log = 0;  // mean over tasks of the mean log speed-up (scored_sums::mean_log)
  double low = 0;       // 95 % interval of mean_log
  double high = 0;
  std::map<std::string, double> outcomes;  // numbers of samples
};

// Returns the stages that learn, in order, with at most `max_points` points in all. The intervals
// resample the tasks 1,000 times (percentile bootstrap, Efron and Tibshirani 1993, chapter 13); a
// point of one task has no interval: low and high are NaN.
std::vector<learning_point> learning_curve(const run_results& of, std::size_t max_points = 60);

}  // namespace hone
