#include "launch/run/run_activity.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

actor_status_record status_of(const std::string& room, double busy_seconds,
                              double leased_seconds = 0) {
  record_builder<schema::ActorStatus> status;
  status->setRoom(room);
  status->setBusySeconds(busy_seconds);
  status->setAliveSeconds(10);
  if (leased_seconds > 0) {
    auto number = status->initNumbers(1)[0];
    number.setName("leased_seconds");
    number.setValue(leased_seconds);
  }
  return status.finish();
}

TEST(RunActivity, HasMeanBusySharesOfTheActorsOfARoomAndTheirPredecessors) {
  node_snapshot snapshot;
  snapshot.actors["device a"] = status_of("device", 4);
  snapshot.actors["device b"] = status_of("device", 8);
  snapshot.actors["queue compile"] = status_of("queue", 5);
  snapshot.earlier["device b"] = {.busy_seconds = 0, .alive_seconds = 10};
  const auto shares = activity_of(snapshot).busy;
  ASSERT_EQ(shares.size(), 1U) << "queues are left out";
  EXPECT_DOUBLE_EQ(shares.at("device"), 12.0 / 30);
}

TEST(RunActivity, ShowsForHowLongADeviceWasLeased) {
  node_snapshot snapshot;
  snapshot.actors["device a"] = status_of("device", 4, 2.5);
  EXPECT_DOUBLE_EQ(activity_of(snapshot).busy.at("device leased"), 0.25);
}

TEST(RunActivity, HasWhatEndpointsWereAsked) {
  node_snapshot snapshot;
  record_builder<schema::ActorStatus> status;
  status->setRoom("generator");
  status->setAliveSeconds(10);
  const auto sent = named_numbers("local-1", {.requests = 4, .failures = 1, .answer_s = 6});
  auto numbers = status->initNumbers(static_cast<unsigned>(sent.size()));
  unsigned i = 0;
  for (const auto& [name, value] : sent) {
    numbers[i].setName(name);
    numbers[i++].setValue(value);
  }
  snapshot.actors["generator 0"] = status.finish();
  const auto endpoints = activity_of(snapshot).endpoints;
  ASSERT_EQ(endpoints.size(), 1U);
  EXPECT_EQ(describe(endpoints.at("local-1")),
            "4 requests (1 failed), 2.0 s an answer, 0 tokens read, 0 written");
}

}  // namespace
}  // namespace hone
