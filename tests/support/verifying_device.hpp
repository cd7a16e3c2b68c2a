#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "evaluation/backends/device.hpp"
#include "messages/names.hpp"

namespace hone::testing_support {

// A device whose verdicts are those of a function, which may throw. It cannot measure.
class verifying_device final : public device {
 public:
  verifying_device(record<schema::DeviceType> type, std::function<Outcome()> verdict)
      : type_(std::move(type)), verdict_(std::move(verdict)) {}
  const record<schema::DeviceType>& type() const override { return type_; }
  const std::string& name() const override { return name_; }
  record<schema::Verdict> verify(const schema::VerifyJob::Reader& /*job*/, const task& /*t*/,
                                 std::uint64_t /*seed*/) override {
    const Outcome outcome = verdict_();
    record_builder<schema::Verdict> verdict;
    verdict->setOutcome(outcome);
    return verdict.finish();
  }
  record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& /*job*/,
                                      const task& /*t*/, std::uint64_t /*seed*/) override {
    throw std::logic_error("this device cannot measure");
  }
  task_report check_task(const task& /*t*/) override { return {}; }

 private:
  std::string name_ = "verifying";
  record<schema::DeviceType> type_;
  std::function<Outcome()> verdict_;
};

}  // namespace hone::testing_support
