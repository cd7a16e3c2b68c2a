#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "evaluation/judge/gpu/gpu_side.hpp"
#include "evaluation/judge/paired_rounds.hpp"

namespace hone {

// Of a candidate's process and the reference's, with the reference in both.
struct pair_facts {
  process_bias bias;
  double reference_us = 0;  // a call beside itself, as it is scored, the bias taken off; 0: nothing
                            // is known of the pair
  double unseen_ns = 0;  // what the host waits longer for a call in the candidate's process, beyond
                         // what its clock says
  bool can_trace = false;  // CUPTI shows what the reference does in the candidate's process
};

// Of a timed case on a GPU, whoever the candidate is.
struct case_facts {
  gpu_side::limits limits;  // calls that fit into memory
  std::vector<case_timing::baseline> baselines;
  double reference_wall_us = 0;  // a call, in a train
  bool waits_for_host = false;   // the reference does
  timing_rules rules;
  std::map<std::pair<std::uint64_t, std::uint64_t>, pair_facts>
      pairs;  // by the serial numbers of the candidate's and the reference's process
};

}  // namespace hone
