#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "evaluation/judge/timing.hpp"
#include "evaluation/judge/verification.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"

namespace hone {

// A program's timed cases, up to the first that failed.
struct timed_program {
  program_failure failure{Outcome::OK, "", ""};
  std::vector<std::pair<task_case, case_timing>> timings;
  double reverify_agreement = 0;  // how far another measurement of it may be from this one

  bool is_timed() const {
    return failure.outcome == Outcome::OK || failure.outcome == Outcome::UNSTABLE;
  }
  scored_ratio score() const {
    std::vector<ratio_summary> ratios;
    for (const auto& [at, timing] : timings) ratios.push_back(timing.ratio);
    return combine(ratios);
  }
};

// The two protocols of evaluation.md as one kind of device carries them out. What it prepares for a
// task is kept for the tasks that were used last. Everything that a variant can do wrong is a
// value; throws reference_error where the task is at fault, std::length_error where it does not
// fit, std::runtime_error where the device cannot go on. One thread.
class program_judge {
 public:
  virtual ~program_judge() = default;

  // `seed` 0: drawn from the operating system once the variant is loaded; it is given back.
  virtual verification_result verify(const schema::Artifact::Reader& artifact, const task& t,
                                     std::uint64_t& seed) = 0;
  // `earlier`: how many measurements this one has to agree with or replaces. The first two are made
  // in different processes, and each further one in a process that has not run the program.
  virtual timed_program time(const schema::Artifact::Reader& artifact, const task& t,
                             random_stream& random, int earlier) = 0;
  // Runs the reference on every case that the device has, with every distribution; a line a case.
  virtual std::vector<std::string> check_task(const task& t) = 0;
  virtual void forget(const task& t) = 0;

  virtual double clock_mhz() const = 0;               // now; 0: unknown
  virtual double temperature_c() const { return 0; }  // the same
  virtual std::string toolchain() const = 0;
  virtual std::string driver() const = 0;
};

// "N=63 M=257 (timed): float32[63, 257]", a case's line in check_task(), and what is to be said of
// how exact the reference is in its own types: its error against float64 over what is allowed;
// nothing where it does not run in float64.
std::string describe_case(const task_case& at, const std::vector<tensor_layout>& outputs,
                          std::optional<double> inexactness);

}  // namespace hone
