#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/program/failure.hpp"
#include "messages/names.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// The result of running a task's reference on all cases.
struct task_report {
  std::optional<program_failure> failure;  // why the reference failed
  std::vector<std::string> cases;          // one line per case, for people
};

// One GPU, one reserved processor core, or a simulated device. Each request runs a whole protocol
// of evaluation.md and uses the device exclusively; requests must not overlap. A variant's failure
// is part of the result. Functions throw std::runtime_error only if the device itself cannot
// continue. Confined to the thread that made it.
//
// A new kind of device implements this interface, or program_judge if it runs programs in sandboxes
// (judging_device then does the rest). It is registered in evaluation/devices.cpp (by name),
// evaluation/variant_compiler.cpp (what compiles for it), DeviceType.Kind in
// messages/schema/task.capnp, and where names of devices are checked: launch/configuration.cpp and
// tasks/task_sections.cpp (`on` of a case).
class device {
 public:
  virtual ~device() = default;

  virtual const record<schema::DeviceType>& type() const = 0;
  virtual const std::string& name() const = 0;  // "cpu:1"

  // Decides whether the artifact computes what the task asks for. If `seed` is 0, a seed is drawn
  // from the operating system once the variant is loaded. Blocks until all calls are checked.
  virtual record<schema::Verdict> verify(const schema::VerifyJob::Reader& job, const task& t,
                                         std::uint64_t seed) = 0;

  // Measures the speed of the artifact against the task's reference, or screens it if the job's
  // header says so. If the job carries a first measurement, this measurement must confirm it; if it
  // does so in few rounds, or is further from 1 where chance may be the reason, the result is the
  // first measurement with its confirmation. If `seed` is 0, a random seed is drawn.
  virtual record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& job,
                                              const task& t, std::uint64_t seed) = 0;

  // Runs the task's reference on every case that runs on this kind of device, with every
  // distribution that the task lists.
  virtual task_report check_task(const task& t) = 0;

  // Returns true if a first measurement must be confirmed by another one, because it is very good
  // or differs from equal by very little (evaluation.md section 3, point 7). `best_score`: the best
  // known score of the task on this device type, or 0 if none is known.
  static bool needs_confirmation(const schema::Measurement::Reader& m, double best_score) {
    const double score = m.getScore();
    return m.getOutcome() == schema::Outcome::OK && !m.getScreened() &&
           (score > 3 || (best_score > 0 && score > 2 * best_score) ||
            (score != 1 && is_close_to_equal(m)));
  }
  // Returns the milliseconds of the measurement that measure() has just made, although it may
  // return the first one.
  static double last_measure_ms(const schema::Measurement::Reader& m) {
    return m.hasConfirmation() ? m.getConfirmation().getMeasureMs() : m.getMeasureMs();
  }
  // Returns true if chance may be the reason that a score is not 1.
  static bool is_close_to_equal(const schema::Measurement::Reader& m) {
    // On a GPU two loads of one launch-bound program may differ by 5 %, and more than their
    // intervals tell.
    const bool is_gpu = m.getDevice().cStr() != nullptr && m.getDevice().startsWith("cuda");
    const double close_to_equal = is_gpu ? 0.05 : 0.025;  // scores have two decimals
    return std::abs(m.getScore() - 1) <
           std::max(close_to_equal, m.getIntervalHigh() - m.getIntervalLow());
  }
};

}  // namespace hone
