#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/backends/device.hpp"
#include "evaluation/backends/program_judge.hpp"

namespace hone {

// A device that runs programs. It builds verdicts and measurements from the results of a
// program_judge, repeats measurements that do not settle, and confirms first measurements.
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
  task_report check_task(const task& t) override;

 private:
  // A program's timed cases, up to the first that failed.
  struct timed_program {
    std::optional<program_failure> failure;
    std::vector<std::pair<task_case, case_timing>> timings;
    double reverify_agreement = 0;  // the largest of the cases
    bool first_counts = false;      // the job's first measurement is the one to be recorded

    // Returns true if the timings are worth reporting.
    bool is_timed() const { return !failure || failure->outcome == Outcome::UNSTABLE; }
    std::size_t confirmed_cases() const;  // that agreed with a first measurement in few rounds
    bool is_confirmed() const { return !failure && confirmed_cases() == timings.size(); }
    scored_ratio score() const;
  };
  struct timing_aim {
    std::vector<double> expected{};  // speed-ups by case of a first measurement to be confirmed
    bool is_screening = false;
  };
  timed_program time(const schema::Artifact::Reader& artifact, const task& t, const timing_aim& aim,
                     int earlier, time_budget& budget, random_stream& random);
  timed_program time_until_settled(const schema::Artifact::Reader& artifact, const task& t,
                                   const timing_aim& aim, int& earlier, time_budget& budget,
                                   random_stream& random);
  timed_program screen(const schema::Artifact::Reader& artifact, const task& t,
                       random_stream& random);
  timed_program time_and_confirm(const schema::BenchmarkJob::Reader& job, const task& t,
                                 random_stream& random);
  record<schema::Measurement> confirmed_first(const schema::BenchmarkJob::Reader& job,
                                              const timed_program& by, double measure_ms) const;

  std::string name_;
  std::string node_;
  record<schema::DeviceType> type_;
  std::unique_ptr<program_judge> judge_;
};

}  // namespace hone
