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
    run_bench(plan, {{"unlucky", cpu, make}}, results, [](auto&&...) {});
    return results.of(plan, {std::string(view(cpu->getName()))}).at(0).outcome;
  };
  EXPECT_EQ(outcome_after(1), "wrong_result");
  EXPECT_EQ(outcome_after(2), "infrastructure") << "but not for ever";
}

}  // namespace
}  // namespace hone
