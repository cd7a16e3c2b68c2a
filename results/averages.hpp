#pragma once

#include <vector>

namespace hone {

// Averages of speed-ups; 0 if there are none.
double geometric_mean(const std::vector<double>& values);
double median(std::vector<double> values);

}  // namespace hone
