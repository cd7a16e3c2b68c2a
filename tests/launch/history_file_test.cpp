#include "launch/run/history_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

actor_status_record status_of(const std::string& room, std::uint64_t processed,
                              double busy_seconds) {
  record_builder<schema::ActorStatus> status;
  status->setRoom(room);
  status->setDeviceType(room == "device" ? "h100" : "");
  status->setQueued(3);
  status->setInFlight(2);
  status->setProcessed(processed);
  status->setBusySeconds(busy_seconds);
  if (room == "device") {
    auto clock = status->initNumbers(1)[0];
    clock.setName("clock_mhz");
    clock.setValue(1980);
  }
  return status.finish();
}

class History : public testing::Test {
 protected:
  History() {
    record_builder<schema::RunStatus> run;
    run->setStage("contrastive");
    run->setStep(4);
    run->setLag(1.5);
    auto outcome = run->initOutcomes(1)[0];
    outcome.setName("ok");
    outcome.setValue(7);
    now_.run = run.finish();
    now_.actors["device a"] = status_of("device", 10, 5);
    now_.actors["device b"] = status_of("device", 20, 6);
    now_.actors["queue verify"] = status_of("queue", 0, 0);
  }
  std::vector<nlohmann::json> rows() const {
    std::vector<nlohmann::json> all;
    std::ifstream in(path());
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  std::filesystem::path path() const { return folder_ / "history.jsonl"; }

  testing_support::temporary_folder folder_;
  node_snapshot now_;
};

TEST_F(History, HasARowEveryTenSecondsWithTheShareSinceTheRowBefore) {
  history_file history(path());
  history.note(now_, 1'000'000);
  history.note(now_, 1'009'999);
  now_.actors["device a"] = status_of("device", 15, 9);
  history.note(now_, 1'010'000);
  const auto all = rows();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["busy"].size(), 0U) << "nothing is known of the time before";
  EXPECT_DOUBLE_EQ(all[1]["busy"]["device a"], 0.4);
  EXPECT_DOUBLE_EQ(all[1]["busy"]["device b"], 0);
  EXPECT_EQ(all[1]["rooms"]["device of h100"]["actors"], 2);
  EXPECT_EQ(all[1]["rooms"]["device of h100"]["processed"], 35);
  EXPECT_EQ(all[1]["devices"]["device b"]["clock_mhz"], 1980);
  EXPECT_EQ(all[1]["queues"]["queue verify"]["queued"], 3);
  EXPECT_EQ(all[1]["stage"], "contrastive");
  EXPECT_EQ(all[1]["outcomes"]["ok"], 7);
}

TEST_F(History, WritesNothingBeforeThePoolHasReported) {
  history_file history(path());
  now_.run = {};
  history.note(now_, 1'000'000);
  EXPECT_TRUE(rows().empty());
}

TEST_F(History, KeepsABoundedNumberOfRowsAndTheNewestOfThem) {
  history_file history(path());
  const std::size_t count = history_file::max_rows + 1;
  for (std::size_t i = 0; i < count; ++i)
    history.note(now_, 1'000'000 + i * history_file::interval_ms);
  const auto all = rows();
  EXPECT_LT(all.size(), history_file::max_rows);
  EXPECT_GT(all.size(), history_file::max_rows / 2);
  EXPECT_EQ(all.back()["time_ms"], 1'000'000 + (count - 1) * history_file::interval_ms);
  EXPECT_EQ(all[1]["time_ms"].get<std::uint64_t>() - all[0]["time_ms"].get<std::uint64_t>(),
            2 * history_file::interval_ms);
}

TEST_F(History, GoesOnAfterARowThatWasCut) {
  { history_file(path()).note(now_, 1'000'000); }
  std::ofstream(path(), std::ios::app) << "{\"time_ms\": 10";
  history_file(path()).note(now_, 2'000'000);
  EXPECT_EQ(rows().size(), 2U);
}

}  // namespace
}  // namespace hone
