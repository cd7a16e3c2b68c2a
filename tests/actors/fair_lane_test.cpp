#include "actors/fair_lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/caf_records.hpp"

namespace hone {
namespace {

using testing::ElementsAre;

compile_job job(std::uint64_t number, const std::string& client, std::uint8_t priority = 1) {
  record_builder<schema::CompileJob> j;
  auto header = j->initHeader();
  measurement_id{number, 1}.store(header.initMeasurementId());
  variant_id{number, 2}.store(header.initVariantId());
  task_id{1, 1}.store(header.initTaskId());
  header.setDeviceType("a");
  header.setClient(client);
  header.setPriority(priority);
  record_builder<schema::DeviceType> type;
  type->setName("a");
  j->setDeviceType(*type.finish());
  return j.finish();
}

std::uint64_t number_of(const compile_job& j) {
  return measurement_id(j->getHeader().getMeasurementId()).high;
}

std::vector<std::uint64_t> take_all(fair_lane<compile_job>& lane) {
  std::vector<std::uint64_t> taken;
  while (!lane.empty()) {
    const std::uint64_t front = number_of(lane.front());
    taken.push_back(number_of(lane.take_front()));
    EXPECT_EQ(taken.back(), front);
  }
  return taken;
}

TEST(FairLane, ClientsTakeTurnsAndTheJobsOfEachKeepTheirOrder) {
  fair_lane<compile_job> lane;
  for (std::uint64_t i = 1; i <= 4; ++i) lane.push_back(job(i, "many"));
  lane.push_back(job(11, "few"));
  lane.push_back(job(21, ""));
  lane.push_back(job(12, "few"));
  EXPECT_EQ(lane.size(), 7U);
  EXPECT_THAT(take_all(lane), ElementsAre(1, 11, 21, 2, 12, 3, 4));
}

TEST(FairLane, AHigherPriorityGoesFirst) {
  fair_lane<compile_job> lane;
  lane.push_back(job(1, "a", 0));
  lane.push_back(job(2, "a", 1));
  lane.push_back(job(3, "b", 2));
  lane.push_back(job(4, "a", 2));
  EXPECT_THAT(take_all(lane), ElementsAre(3, 4, 2, 1));
}

TEST(FairLane, AJobThatComesBackIsTheNextOfItsPriority) {
  fair_lane<compile_job> lane;
  lane.push_back(job(1, "a"));
  lane.push_back(job(2, "b"));
  lane.push_back(job(3, "b", 2));
  lane.push_front(job(4, "b"));
  lane.push_front(job(5, "c"));
  EXPECT_THAT(take_all(lane), ElementsAre(3, 5, 4, 1, 2));
}

TEST(FairLane, ForgetsWhatIsErased) {
  fair_lane<compile_job> lane;
  for (std::uint64_t i = 1; i <= 6; ++i) lane.push_back(job(i, i < 4 ? "a" : "b"));
  lane.erase_if([](const compile_job& j) { return number_of(j) < 5; });
  EXPECT_EQ(lane.size(), 2U);
  EXPECT_THAT(take_all(lane), ElementsAre(5, 6));
  lane.push_back(job(7, "a"));
  lane.erase_if([](const compile_job&) { return true; });
  EXPECT_TRUE(lane.empty());
}

}  // namespace
}  // namespace hone
