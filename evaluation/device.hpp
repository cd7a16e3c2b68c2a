#pragma once

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
  std::vector<std::string> cases;          // a line per case
};

// One GPU, one reserved processor core, or a simulated device. Each request is a whole protocol and
// has the device to itself; requests must not overlap. Whatever a variant does wrong is part of the
// result. Functions throw std::runtime_error only if the device itself cannot go on. Confined to the
// thread that made it.
class device {
 public:
  virtual ~device() = default;

  virtual const record<schema::DeviceType>& type() const = 0;
  virtual const std::string& name() const = 0;  // "cpu:1"

  // Decides whether the artifact computes what the task asks for. `seed` 0: drawn from the operating
  // system once the variant is loaded.
  virtual record<schema::Verdict> verify(const schema::VerifyJob::Reader& job, const task& t,
                                         std::uint64_t seed) = 0;

  // Measures the speed of the artifact against the task's reference. The job may carry a first
  // measurement to be confirmed.
  virtual record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& job,
                                              const task& t, std::uint64_t seed) = 0;

  // Runs the task's reference on every case of this kind of device, with every distribution.
  virtual task_report check_task(const task& t) = 0;

  // Returns true if a first measurement is so good that another one must confirm it (evaluation.md
  // section 3, point 7). `best_score`: the best known of the task and device type; 0: none.
  static bool needs_confirmation(const schema::Measurement::Reader& m, double best_score) {
    return m.getOutcome() == schema::Outcome::OK &&
           (m.getScore() > 3 || (best_score > 0 && m.getScore() > 2 * best_score));
  }
};

}  // namespace hone
