#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evaluation/devices/device.hpp"
#include "evaluation/devices/program_judge.hpp"

namespace hone {

// A device that judges by running programs: what a judge finds becomes verdicts and measurements,
// after what does not settle has been measured again and what is surprising confirmed.
class judging_device final : public device {
 public:
  judging_device(std::string name, std::string node, record<schema::DeviceType> type,
                 std::unique_ptr<program_judge> judge);

  const record<schema::DeviceType>& type() const override { return type_; }
  const std::string& name() const override { return name_; }
  record<schema::Verdict> verify(const schema::VerifyJob::Reader& job, const task& t,
                                 std::uint64_t seed) override;
  record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& job, const task& t,
                                      std::uint64_t seed) override;

  // Runs the reference on every case that the device has, with every distribution; for `hone task
  // check`. Throws reference_error; returns a line a case.
  std::vector<std::string> check_task(const task& t) { return judge_->check_task(t); }

 private:
  timed_program time_until_settled(const schema::Artifact::Reader& artifact, const task& t,
                                   random_stream& random, int& earlier);
  timed_program time_and_confirm(const schema::BenchmarkJob::Reader& job, const task& t,
                                 random_stream& random);

  std::string name_;
  std::string node_;
  record<schema::DeviceType> type_;
  std::unique_ptr<program_judge> judge_;
};

}  // namespace hone
