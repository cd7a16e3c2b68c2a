#pragma once

#include <optional>
#include <vector>

#include "cuda/gpus.hpp"
#include "evaluation/backends/cuda/gpu_calibration.hpp"
#include "evaluation/backends/cuda/gpu_session.hpp"
#include "evaluation/judge/case_timing.hpp"

namespace hone {

// The arguments of time_gpu_case(). Everything referred to must outlive the timing.
struct gpu_case {
  gpu_context& gpu;
  gpu_task& on_gpu;  // with the case selected
  gpu_session& candidate;
  gpu_session& reference;
  const gpu_facts& device;
  const case_facts& facts;
  const pair_facts& pair;
  const std::vector<distribution>& usable;  // distributions of rounds
  std::optional<double> expected_speedup;   // of a first measurement to be confirmed
  bool is_screening;
  const settings& asked;  // by the candidate
  bool tunes;             // the candidate's first call may try algorithms
  bool of_module;         // both programs are Python modules, which have the judge's clock alone
  time_budget& budget;
};

// Times one case of a candidate (evaluation.md section 3): paired rounds, two bursts, and a
// comparison of all clocks. If the rounds confirm a first measurement, the rest is left out: it was
// part of that measurement. Throws reference_error if the reference fails.
case_timing time_gpu_case(const gpu_case& of, random_stream& random);

}  // namespace hone
