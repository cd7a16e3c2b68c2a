#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "messages/names.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// One GPU, one reserved processor core, or one that is only simulated. Each request is a whole
// protocol and has the device to itself; whoever calls must not call twice at once. Both requests
// answer with a value for everything that a variant can do wrong; they throw std::runtime_error
// only when the device itself cannot go on.
class device {
 public:
  virtual ~device() = default;

  virtual const record<schema::DeviceType>& type() const = 0;
  virtual const std::string& name() const = 0;  // "cpu:1"

  // Whether the artifact computes what the task asks for. `seed` 0: drawn from the operating system
  // once the variant is loaded.
  virtual record<schema::Verdict> verify(const schema::VerifyJob::Reader& job, const task& t,
                                         std::uint64_t seed) = 0;

  // How fast it is, against the task's reference. The job may carry a first measurement to be
  // confirmed.
  virtual record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& job,
                                              const task& t, std::uint64_t seed) = 0;

  // Whether a fresh measurement is so good that another one must confirm it (evaluation.md section
  // 3, point 7).
  static bool needs_confirmation(const schema::Measurement::Reader& m, double best_score) {
    return m.getOutcome() == schema::Outcome::OK &&
           (m.getScore() > 3 || (best_score > 0 && m.getScore() > 2 * best_score));
  }
};

}  // namespace hone
