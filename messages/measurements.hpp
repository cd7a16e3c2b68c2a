#pragma once

#include <map>
#include <string>
#include <vector>

#include "messages/schema/pipeline.capnp.h"

namespace hone {

// True if a variant is ok and was timed. A variant that was only verified is ok without a score.
bool has_score(const schema::Evaluation::Reader& e);

// How fast a variant is on a device type, as every list, report and page says it. Speed-ups are
// ratios to the eager reference.
struct headline {
  double speedup = 0;            // Evaluation.score: the median of the ok measurements; 0: none
  std::size_t measurements = 0;  // that are ok
  double lowest = 0;             // of them
  double highest = 0;
  // The measurements after the first one. The first made the variant the best of many, and luck had
  // a part in that; the later ones were not chosen.
  std::size_t later = 0;
  double later_speedup = 0;  // their median; 0: none

  // Decides which of several variants is the best.
  double deciding() const { return later > 0 ? later_speedup : speedup; }
};
headline headline_of(const schema::Evaluation::Reader& e);

// Returns the lower median: of an even number of values, the lower of the two in the middle, so
// that it is always one of them. Returns 0 if there are none.
double lower_median(std::vector<double> values);

// Returns the measurement that an evaluation's score is taken from, with its interval and times:
// the last ok one with that score. (Pools of earlier versions may have means of two scores; then it
// is the nearest one.) If the evaluation is not ok, returns its last measurement. If nothing was
// timed, the measurement has no cases.
schema::Measurement::Reader measurement_of_score(const schema::Evaluation::Reader& e);

// Return the geometric mean over the timed cases in microseconds per call; 0 if nothing was timed.
double reference_us(const schema::Measurement::Reader& m);
double candidate_us(const schema::Measurement::Reader& m);
// Returns the same of each baseline that was timed in every case, by name. The eager reference is
// one of them.
std::map<std::string, double> baselines_us(const schema::Measurement::Reader& m);
// Returns why a case lacks a baseline, by the baseline's name: the reason of the first such case.
std::map<std::string, std::string> missing_baselines(const schema::Measurement::Reader& m);

// Returns the speed-up of an ok evaluation over each baseline of its measurement, by name: its
// score, divided by how much faster the baseline is than the eager reference. Returns nothing if
// the evaluation is not ok.
std::map<std::string, double> speedups_over_baselines(const schema::Evaluation::Reader& e);

}  // namespace hone
