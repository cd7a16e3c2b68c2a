#pragma once

#include <list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/devices/device.hpp"
#include "evaluation/devices/program_session.hpp"
#include "evaluation/judge/timing.hpp"

namespace hone {

// What one kind of device has of its own: processes to run programs in, and the constants of its clock.
class program_host {
 public:
  virtual ~program_host() = default;

  // A fresh process with the candidate loaded, on memory that no reference ever uses.
  virtual std::variant<std::unique_ptr<program_session>, program_failure> open_candidate(const schema::Artifact::Reader& artifact, const task& t) = 0;
  // A fresh process with the task's reference, to be timed. Throws reference_error.
  virtual std::unique_ptr<program_session> open_reference(const task& t) = 0;
  // A process for the oracle's programs, which may live for long. Throws reference_error.
  virtual std::unique_ptr<program_session> open_oracle(const task& t) = 0;

  virtual timing_rules rules() const = 0;
  virtual verification_limits limits() const = 0;  // the time for a call holds for timed ones as well
  virtual std::size_t timing_memory_bytes() const = 0;  // for the inputs and outputs of one side
  virtual double floor_us_a_byte() const = 0;
  virtual double clock_mhz() const = 0;  // now; 0: unknown
  virtual std::string toolchain() const = 0;
  virtual std::string driver() const = 0;
};

// A device that judges by running programs: the protocols of evaluation.md over a host's processes. What it prepares for a task
// (the oracle, rotating inputs) is kept for the tasks that were used last.
class judging_device final : public device {
 public:
  judging_device(std::string name, std::string node, record<schema::DeviceType> type, std::unique_ptr<program_host> host);
  ~judging_device() override;

  const record<schema::DeviceType>& type() const override { return type_; }
  const std::string& name() const override { return name_; }
  record<schema::Verdict> verify(const schema::VerifyJob::Reader& job, const task& t, std::uint64_t seed) override;
  record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& job, const task& t, std::uint64_t seed) override;

  // Runs the reference on every case that the device has, with every distribution; for `hone task check`. Throws
  // reference_error; returns a line a case.
  std::vector<std::string> check_task(const task& t);

 private:
  struct prepared_task;
  struct timed_program;
  prepared_task& prepare(const task& t);
  timed_program time_once(const schema::Artifact::Reader& artifact, const task& t, random_stream& random);
  timed_program time_until_settled(const schema::Artifact::Reader& artifact, const task& t, random_stream& random);
  timed_program time_and_confirm(const schema::BenchmarkJob::Reader& job, const task& t, random_stream& random);
  void forget(const task& t);
  std::string kind() const;

  std::string name_;
  std::string node_;
  record<schema::DeviceType> type_;
  std::unique_ptr<program_host> host_;
  std::list<std::unique_ptr<prepared_task>> prepared_;  // most recently used first
};

}  // namespace hone
