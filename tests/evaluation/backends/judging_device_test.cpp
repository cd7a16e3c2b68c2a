#include "evaluation/backends/judging_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/failures.hpp"

namespace hone {
namespace {

using ::testing::ElementsAre;

// The result of a fake judge that times a program.
struct scripted_timing {
  std::vector<double> speedups;    // by case
  std::vector<bool> is_confirmed;  // likewise; empty: no case is
  bool is_unstable = false;
};

// Plays back timings and records what was asked of it.
class scripted_judge final : public program_judge {
 public:
  std::deque<scripted_timing> script;
  std::vector<std::vector<double>> expected;  // by case, one row per timing; 0: none
  std::vector<int> earlier;
  std::vector<bool> is_screening;  // by timed case

  std::string kind() const override { return "cuda"; }
  verification_result verify(const schema::Artifact::Reader&, const task&,
                             std::uint64_t&) override {
    return {};
  }
  program_result<void> begin_timing(const schema::Artifact::Reader&, const task&,
                                    const std::vector<wanted_timing>& cases, int number,
                                    time_budget&, random_stream&) override {
    expected.emplace_back();
    for (const wanted_timing& wanted : cases)
      expected.back().push_back(wanted.expected_speedup.value_or(0));
    earlier.push_back(number);
    next_case_ = 0;
    return {};
  }
  case_timing time_case(const wanted_timing& wanted, random_stream&) override {
    is_screening.push_back(wanted.is_screening);
    const scripted_timing& now = script.front();
    case_timing timing;
    timing.log_ratios.assign(7, std::log(now.speedups[next_case_]));
    timing.ratio = summarize(timing.log_ratios);
    timing.rounds = 7;
    timing.is_confirmed = !now.is_confirmed.empty() && now.is_confirmed[next_case_];
    if (now.is_unstable) timing.failure = program_failure{Outcome::UNSTABLE, "", "restless"};
    ++next_case_;
    return timing;
  }
  void end_timing() override { script.pop_front(); }
  double reverify_agreement() const override { return 0.1; }
  std::vector<std::string> check_task(const task&) override { return {}; }
  void forget(const task&) override {}
  double clock_mhz() const override { return 0; }
  std::string toolchain() const override { return "none"; }
  std::string driver() const override { return "none"; }

 private:
  std::size_t next_case_ = 0;
};

class JudgingDevice : public ::testing::Test {
 protected:
  JudgingDevice() {
    auto judge = std::make_unique<scripted_judge>();
    judge_ = judge.get();
    device_ = std::make_unique<judging_device>(
        "cuda:1", "node", record_builder<schema::DeviceType>().finish(), std::move(judge));
    task_.cases.resize(2);
    for (task_case& at : task_.cases) at.timed = true;
    task_.cases[1].sizes["N"] = 2;
  }

  record<schema::Measurement> first(double score, const std::vector<double>& speedups) const {
    record_builder<schema::Measurement> measurement;
    measurement->setScore(score);
    measurement->setScoreRaw(score);
    measurement->setDevice("cuda:0");
    measurement->setMeasureMs(400);
    auto cases = measurement->initCases(static_cast<unsigned>(speedups.size()));
    for (unsigned i = 0; i < cases.size(); ++i) cases[i].setSpeedup(speedups[i]);
    return measurement.finish();
  }

  record<schema::Measurement> confirm(const record<schema::Measurement>& first,
                                      std::deque<scripted_timing> script) {
    judge_->script = std::move(script);
    record_builder<schema::BenchmarkJob> job;
    job->setFirst(*first);
    return device_->measure(*job.finish(), task_, 1);
  }

  task task_;
  scripted_judge* judge_ = nullptr;  // the device's
  std::unique_ptr<judging_device> device_;
};

TEST_F(JudgingDevice, RecordsASurprisingFirstMeasurementWithItsConfirmation) {
  const auto recorded = confirm(first(4, {2, 8}), {{{2.02, 8.1}, {true, true}}});
  EXPECT_THAT(judge_->expected, ElementsAre(ElementsAre(2, 8)));
  EXPECT_THAT(judge_->earlier, ElementsAre(1)) << "it is timed in other processes";
  EXPECT_EQ(recorded->getScore(), 4);
  EXPECT_EQ(view(recorded->getDevice()), "cuda:0");
  EXPECT_EQ(recorded->getMeasureMs(), 400);
  ASSERT_TRUE(recorded->hasConfirmation());
  EXPECT_EQ(view(recorded->getConfirmation().getDevice()), "cuda:1");
  EXPECT_NEAR(recorded->getConfirmation().getScoreRaw(), std::sqrt(2.02 * 8.1), 0.01);
  EXPECT_EQ(recorded->getConfirmation().getRounds(), 14U);
}

TEST_F(JudgingDevice, ScreensOnceAndSaysSo) {
  judge_->script = {{{30, 30}, {}, false}};
  record_builder<schema::BenchmarkJob> job;
  job->initHeader().setScreened(true);
  const auto screened = device_->measure(*job.finish(), task_, 1);
  EXPECT_THAT(judge_->is_screening, ElementsAre(true, true)) << "each case once";
  EXPECT_TRUE(screened->getScreened());
  EXPECT_FALSE(device::needs_confirmation(*screened, 1)) << "however fast the program seems";
  EXPECT_FALSE(confirm(first(4, {2, 8}), {{{2, 8}, {}}})->getScreened());
}

TEST_F(JudgingDevice, MeasuresInFullIfOnlySomeCasesAreConfirmed) {
  const auto recorded =
      confirm(first(4, {2, 8}), {{{2.02, 7.5}, {true, false}}, {{2.02, 7.6}, {}}});
  EXPECT_THAT(judge_->expected, ElementsAre(ElementsAre(2, 8), ElementsAre(0, 0)));
  EXPECT_THAT(judge_->earlier, ElementsAre(1, 2));
  EXPECT_FALSE(recorded->hasConfirmation());
  EXPECT_NEAR(recorded->getScoreRaw(), std::sqrt(2.02 * 7.6), 0.01) << "the last is recorded";
}

TEST_F(JudgingDevice, MeasuresInFullAfterAnUnstableConfirmation) {
  const auto recorded = confirm(first(4, {2, 8}), {{{1, 1}, {}, true}, {{2, 8.2}, {}}});
  EXPECT_THAT(judge_->expected, ElementsAre(ElementsAre(2, 8), ElementsAre(0, 0)));
  EXPECT_EQ(recorded->getOutcome(), Outcome::OK);
  EXPECT_FALSE(recorded->hasConfirmation());
}

TEST_F(JudgingDevice, MeasuresAThirdTimeIfTwoWholeMeasurementsDisagree) {
  const auto recorded = confirm(first(4, {2, 8}), {{{1, 8}, {}}, {{1, 8.1}, {}}});
  EXPECT_THAT(judge_->expected, ElementsAre(ElementsAre(2, 8), ElementsAre(0, 0)));
  EXPECT_EQ(recorded->getOutcome(), Outcome::OK);
  EXPECT_NEAR(recorded->getScoreRaw(), std::sqrt(8.1), 0.01);
  const auto disagreeing = confirm(first(4, {2, 8}), {{{1, 8}, {}}, {{1, 4}, {}}});
  EXPECT_EQ(disagreeing->getOutcome(), Outcome::UNSTABLE);
}

TEST_F(JudgingDevice, ConfirmsAScoreCloseToEqualByAWholeMeasurement) {
  const auto recorded = confirm(first(1.02, {1.02, 1.02}), {{{1.01, 1.01}, {}}});
  EXPECT_THAT(judge_->expected, ElementsAre(ElementsAre(0, 0)));
  EXPECT_NEAR(recorded->getScoreRaw(), 1.01, 0.001);
}

TEST_F(JudgingDevice, RecordsTheScoreThatIsCloserToEqualOfTwo) {
  const auto recorded = confirm(first(1.01, {1.01, 1.01}), {{{1.02, 1.02}, {}}});
  EXPECT_EQ(recorded->getScoreRaw(), 1.01);
  EXPECT_NEAR(recorded->getConfirmation().getScoreRaw(), 1.02, 0.001);
}

TEST_F(JudgingDevice, ConfirmsAScoreThatIsKnownByItsValueAloneByAWholeMeasurement) {
  const auto recorded = confirm(first(4, {}), {{{2, 8}, {}}});
  EXPECT_THAT(judge_->expected, ElementsAre(ElementsAre(0, 0)));
  EXPECT_EQ(view(recorded->getDevice()), "cuda:1");
}

}  // namespace
}  // namespace hone
