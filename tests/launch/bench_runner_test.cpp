#include "launch/bench/bench_runner.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "messages/names.hpp"
#include "tests/support/source_folder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;

// A device whose infrastructure fails at its first `failures` verifications.
class unlucky_device final : public device {
 public:
  unlucky_device(record<schema::DeviceType> type, int failures)
      : type_(std::move(type)), failures_(failures) {}
  const record<schema::DeviceType>& type() const override { return type_; }
  const std::string& name() const override { return name_; }
  record<schema::Verdict> verify(const schema::VerifyJob::Reader& /*job*/, const task& /*t*/,
                                 std::uint64_t /*seed*/) override {
    record_builder<schema::Verdict> verdict;
    verdict->setOutcome(failures_-- > 0 ? Outcome::INFRASTRUCTURE : Outcome::WRONG_RESULT);
    return verdict.finish();
  }
  record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& /*job*/,
                                      const task& /*t*/, std::uint64_t /*seed*/) override {
    throw std::logic_error("no job passes verification");
  }
  task_report check_task(const task& /*t*/) override { return {}; }

 private:
  record<schema::DeviceType> type_;
  std::string name_ = "unlucky";
  int failures_;
};

TEST(BenchRunner, JudgesOnceMoreIfTheInfrastructureFails) {
  const temporary_folder folder;
  const bench_plan plan =
      plan_bench({(source_folder() / "configs/tasks/softmax.toml").string()}, "", true);
  const record<schema::DeviceType> cpu = find_devices().cpu;
  const auto outcome_after = [&](int failures) {
    const device_maker make = [&] { return std::make_unique<unlucky_device>(cpu, failures); };
    bench_results results(folder / std::to_string(failures));
    run_bench(plan, {{"unlucky", cpu, make}}, results, [](auto&&...) {});
    return results.of(plan, {std::string(view(cpu->getName()))}).at(0).outcome;
  };
  EXPECT_EQ(outcome_after(1), "wrong_result");
  EXPECT_EQ(outcome_after(2), "infrastructure") << "but not for ever";
}

}  // namespace
}  // namespace hone
