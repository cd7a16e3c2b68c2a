#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "evaluation/devices/program_session.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/statistics.hpp"
#include "evaluation/judge/verification.hpp"

namespace hone {

// Input sets for timing one case of one task: drawn once, then refreshed before every use, so that contents never repeat while
// their preparation costs little. One thread.
class rotating_inputs {
 public:
  rotating_inputs(input_recipe recipe, std::size_t sets, std::size_t parameter_sets, random_stream& random);

  std::size_t size() const { return inputs_.size(); }
  std::size_t parameter_sets() const { return parameters_.size(); }
  input_recipe& recipe() { return recipe_; }
  drawn_values& inputs(std::size_t i) { return inputs_[i]; }
  drawn_values& parameters(std::size_t i) { return parameters_[i]; }

 private:
  input_recipe recipe_;
  std::vector<drawn_values> inputs_;
  std::vector<drawn_values> parameters_;
};

// How many sets a case's timing may hold: enough calls for a batch, within a budget of memory for inputs and outputs.
std::size_t affordable_sets(std::size_t bytes_a_call, std::size_t memory_budget);

// The two programs that are compared, each in a fresh process, and what is right.
struct timed_pair {
  program_session& candidate;
  program_session& reference;
  reference_oracle& oracle;
};

struct timing_limits {
  std::chrono::milliseconds call{10000};
  double floor_us = 0;  // no call can be faster
};

struct case_timing {
  program_failure failure;  // outcome OK: none
  ratio_summary ratio;
  double reference_us = 0;  // medians a call
  double candidate_us = 0;
  double reference_wall_us = 0;
  double candidate_wall_us = 0;
  std::uint32_t rounds = 0;
  std::vector<double> log_ratios;
};

// Times one case as paired rounds: evaluation.md section 3. Reference and candidate alternate in an order drawn each round; a
// batch is enough calls on different inputs; some outputs of every batch of the candidate are checked.
case_timing time_case(const timed_pair& pair, rotating_inputs& inputs, const timing_rules& rules, const timing_limits& limits, random_stream& random);

}  // namespace hone
