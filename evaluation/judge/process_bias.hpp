#pragma once

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/timing_rules.hpp"

namespace hone {

// What two equal programs differ by in two given processes: ln(reference / candidate), and half of
// its 95 % interval. It is the luck of where each process has its code and data
// (doc/decisions/012).
struct process_bias {
  double log_ratio = 0;
  double half_width = 0;
};

process_bias bias_of(const case_timing& equal_programs);

// Returns `rules` for two programs in these processes, of which a call of the reference takes
// `reference_us`: a difference that equal programs may show is no difference.
timing_rules rules_between(const process_bias& bias, double reference_us, timing_rules rules);

// Subtracts the bias from a measurement. The interval widens by what is not known of the bias and
// of the place of the candidate's code.
void subtract_bias(const process_bias& bias, case_timing& timing);

// Returns a reference's time as it was clocked, before the bias was subtracted.
double as_clocked(const process_bias& bias, double reference_us);

}  // namespace hone
