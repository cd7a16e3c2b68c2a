#include "launch/bench/bench_runner.hpp"

#include <gtest/gtest.h>

#include "tests/support/source_folder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/verifying_device.hpp"

namespace hone {
namespace {

using namespace testing_support;

TEST(BenchRunner, JudgesOnceMoreIfTheInfrastructureFails) {
  const temporary_folder folder;
  const bench_plan plan =
      plan_bench({(source_folder() / "configs/tasks/softmax.toml").string()}, "", true);
  const record<schema::DeviceType> cpu = find_devices().cpu;
  const auto outcome_after = [&](int failures) {
    int left = failures;
    const device_maker make = [&] {
      return std::make_unique<verifying_device>(
          cpu, [&] { return left-- > 0 ? Outcome::INFRASTRUCTURE : Outcome::WRONG_RESULT; });
    };
    bench_results results(folder / std::to_string(failures));
    run_bench(plan, {{"unlucky", cpu, make}}, results, evaluation_depth::full, [](auto&&...) {});
    return results.of(plan, {std::string(view(cpu->getName()))}, evaluation_depth::full)
        .at(0)
        .outcome;
  };
  EXPECT_EQ(outcome_after(1), "wrong_result");
  EXPECT_EQ(outcome_after(2), "infrastructure") << "but not indefinitely";
}

TEST(BenchRunner, MeasuresNothingIfItIsOnlyToVerify) {
  const temporary_folder folder;
  const bench_plan plan =
      plan_bench({(source_folder() / "configs/tasks/softmax.toml").string()}, "", true);
  const record<schema::DeviceType> cpu = find_devices().cpu;
  // This device throws if it is asked to measure anything.
  const device_maker make = [&] {
    return std::make_unique<verifying_device>(cpu, [] { return Outcome::OK; });
  };
  bench_results results(folder.path());
  run_bench(plan, {{"verifying", cpu, make}}, results, evaluation_depth::verdict, [](auto&&...) {});
  const auto all = results.of(plan, {std::string(view(cpu->getName()))}, evaluation_depth::verdict);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].outcome, "ok");
  EXPECT_EQ(all[0].speedup, 0);
  EXPECT_EQ(all[0].candidate_us, 0);
}

}  // namespace
}  // namespace hone
