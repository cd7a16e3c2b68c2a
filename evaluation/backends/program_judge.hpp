#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/comparison.hpp"
#include "evaluation/judge/evidence.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "evaluation/judge/verification.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// A timed case of a candidate. If a first measurement has found `expected_speedup`, the timing only
// has to confirm it: it may end as soon as it agrees. A screening follows screening_rules().
struct wanted_timing {
  const task_case* at = nullptr;
  std::optional<double> expected_speedup{};
  bool is_screening = false;
};

// The steps of evaluation.md's two protocols that depend on where programs run. Every kind of
// device that runs programs implements them, and judging_device builds verdicts and measurements
// from their results. The judge caches its preparations for the most recently used tasks. Functions
// throw reference_error if the task is at fault, std::length_error if the task's tensors do not fit
// into an arena, and std::runtime_error if the device cannot continue. Confined to one thread.
class program_judge {
 public:
  virtual ~program_judge() = default;

  // Returns the kind of device as task files name it: "cpu" or "cuda".
  virtual std::string kind() const = 0;

  // Verifies an artifact. A `seed` of 0 is replaced by a seed from the operating system, which is
  // drawn once the variant is loaded.
  virtual verification_result verify(const schema::Artifact::Reader& artifact, const task& t,
                                     std::uint64_t& seed) = 0;

  // Prepares processes for timing `cases` of a candidate. `earlier` is the number of measurements
  // that this one must agree with or replaces. The first two measurements are made in different
  // processes, and each further one in a process that has not run the candidate. The artifact, the
  // cases and the budget, which is that of the whole measurement, must outlive it.
  virtual program_result<void> begin_timing(const schema::Artifact::Reader& artifact, const task& t,
                                            const std::vector<wanted_timing>& cases, int earlier,
                                            time_budget& budget, random_stream& random) = 0;
  // Times one of the cases for which begin_timing() has prepared.
  virtual case_timing time_case(const wanted_timing& wanted, random_stream& random) = 0;
  // Ends the candidate's processes. Called after the last case, and after any failure.
  virtual void end_timing() {}
  // Returns the largest relative difference that is allowed between two measurements of the last
  // timed case.
  virtual double reverify_agreement() const = 0;

  // Runs the reference on every case that runs on this kind of device, with every distribution that
  // the task lists. Returns one line per case, for people.
  virtual std::vector<std::string> check_task(const task& t) = 0;
  // Discards the preparations for a task.
  virtual void forget(const task& t) = 0;

  virtual double clock_mhz() const = 0;               // at this moment; 0: unknown
  virtual double temperature_c() const { return 0; }  // at this moment; 0: unknown
  virtual std::string toolchain() const = 0;
  virtual std::string driver() const = 0;
};

// What check_task() finds out about a case.
struct case_check {
  const task_case& at;
  const std::vector<tensor_layout>& outputs;
  const std::vector<distribution>& usable;
  const possible_studies& possible;
  // The agreement of the reference's outputs for some inputs with those that are expected for
  // others. If they agree, the outputs show nothing of the inputs, and the task has no result.
  const agreement& of_others;
};

// Describes a case for people: "N=63 M=257 (timed): float32[63, 257] ...".
std::string describe(const task& t, const case_check& found);

}  // namespace hone
