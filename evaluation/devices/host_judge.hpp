#pragma once

#include <memory>
#include <string>
#include <variant>

#include "evaluation/devices/program_judge.hpp"
#include "evaluation/devices/program_session.hpp"
#include "evaluation/devices/task_cache.hpp"

namespace hone {

// What a device whose programs work in the host's memory has of its own: processes to run programs
// in, and the constants of its clock.
class program_host {
 public:
  virtual ~program_host() = default;

  // A fresh process with the candidate loaded, on memory that no reference ever uses.
  virtual std::variant<std::unique_ptr<program_session>, program_failure> open_candidate(
      const schema::Artifact::Reader& artifact, const task& t) = 0;
  // A fresh process with the task's reference, to be timed. Throws reference_error.
  virtual std::unique_ptr<program_session> open_reference(const task& t) = 0;
  // A process for the oracle's programs, which may live for long. Throws reference_error.
  virtual std::unique_ptr<program_session> open_oracle(const task& t) = 0;

  virtual timing_rules rules() const = 0;
  virtual verification_limits limits()
      const = 0;  // the time for a call holds for timed ones as well
  virtual std::size_t timing_memory_bytes() const = 0;  // for the inputs and outputs of one side
  virtual double floor_us_a_byte() const = 0;
  virtual double clock_mhz() const = 0;
  virtual std::string toolchain() const = 0;
  virtual std::string driver() const = 0;
};

// The judge over such a host: contents are drawn and outputs compared by the processor, batches of
// calls are timed by a process's clock.
class host_judge final : public program_judge {
 public:
  explicit host_judge(std::unique_ptr<program_host> host);
  ~host_judge() override;

  verification_result verify(const schema::Artifact::Reader& artifact, const task& t,
                             std::uint64_t& seed) override;
  timed_program time(const schema::Artifact::Reader& artifact, const task& t, random_stream& random,
                     int earlier) override;
  std::vector<std::string> check_task(const task& t) override;
  void forget(const task& t) override;
  double clock_mhz() const override { return host_->clock_mhz(); }
  std::string toolchain() const override { return host_->toolchain(); }
  std::string driver() const override { return host_->driver(); }

 private:
  struct prepared_task;
  prepared_task& prepare(const task& t);

  std::unique_ptr<program_host> host_;
  task_cache<prepared_task> prepared_;
};

}  // namespace hone
