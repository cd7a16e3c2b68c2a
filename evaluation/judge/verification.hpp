#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone {

struct verification_limits {
  std::chrono::milliseconds call{10000};  // for one call
  std::chrono::milliseconds loading{0};   // for the first call in addition
  // For the first call of each case in addition, in which a program may try algorithms.
  std::chrono::milliseconds tuning{0};
};

struct verification_result {
  std::optional<program_failure> failure;
  std::uint32_t rounds = 0;
  worst_errors errors;
};

// The trial of a candidate, one case at a time: draws inputs, computes the expected outputs, makes
// calls and compares their outputs. Kinds of device differ in where the tensors lie. Functions
// throw reference_error if the task is at fault. Confined to one thread.
class trial {
 public:
  virtual ~trial() = default;
  virtual const task& of() const = 0;
  // Begins a case and makes room for two input sets, 0 and 1.
  virtual void arrange(const task_case& at) = 0;
  // Returns the distributions that checks of the case may use (timed_checks.hpp).
  virtual std::vector<distribution> usable_distributions() = 0;
  // Draws parameters, and the same inputs for both sets.
  virtual void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) = 0;
  // Perturbs the inputs of one set.
  virtual void perturb(std::size_t set, std::uint64_t perturbation) = 0;
  // Draws the inputs of one set anew, from another distribution.
  virtual void redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) = 0;
  // Makes one call on an input set, on the budget, checks it and adds its errors to `totals`.
  virtual program_result<void> call(std::size_t set, std::chrono::milliseconds limit,
                                    time_budget& budget, worst_errors& totals) = 0;
};

// Verifies a candidate (evaluation.md section 2): every case that runs on this kind of device, two
// rounds with `declared` contents, one with each other usable distribution and input that it
// changes alone, a second one with `sparse` and with `weights`, and at least five in all. The
// inputs of the first two rounds are tried at two addresses, those of later ones at one of the two.
// Inputs are drawn from `seed`, which must have been drawn after the candidate's session was
// opened. Throws reference_error.
verification_result verify_program(trial& candidate, std::string_view device_kind,
                                   std::uint64_t seed, const verification_limits& limits,
                                   time_budget& budget);

}  // namespace hone
