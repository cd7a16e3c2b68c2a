#include "launch/run/busy_shares.hpp"

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

TEST(BusyShares, AreMeansOverTheActorsOfARoomAndTheirPredecessors) {
  node_snapshot snapshot;
  snapshot.actors["device a"] = status_of("device", 4);
  snapshot.actors["device b"] = status_of("device", 8);
  snapshot.actors["queue compile"] = status_of("queue", 5);
  snapshot.earlier["device b"] = {.busy_seconds = 0, .alive_seconds = 10};
  const auto shares = busy_shares(snapshot);
  ASSERT_EQ(shares.size(), 1U) << "queues are left out";
  EXPECT_DOUBLE_EQ(shares.at("device"), 12.0 / 30);
}

TEST(BusyShares, ShowForHowLongADeviceWasLeased) {
  node_snapshot snapshot;
  snapshot.actors["device a"] = status_of("device", 4, 2.5);
  EXPECT_DOUBLE_EQ(busy_shares(snapshot).at("device leased"), 0.25);
}

}  // namespace
}  // namespace hone
