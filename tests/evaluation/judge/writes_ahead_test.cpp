#include "evaluation/judge/gpu/writes_ahead.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr double write_ns = 60e3;  // four times an H200's L2 cache

TEST(WritesAhead, OneIsEnoughForAFewLaunches) {
  EXPECT_EQ(writes_ahead(0, write_ns), 1);
  EXPECT_EQ(writes_ahead(10e3, write_ns), 1);
  EXPECT_EQ(writes_ahead(40e3, write_ns), 1);
  EXPECT_EQ(writes_ahead(90e3, 0), 1) << "how long one takes is not known yet";
}

TEST(WritesAhead, ManyLaunchesHaveHalfAsLongAgain) { EXPECT_EQ(writes_ahead(100e3, write_ns), 3); }

TEST(WritesAhead, NobodyWaitsForMoreThanFourTenthsOfAMillisecond) {
  EXPECT_EQ(writes_ahead(3e6, write_ns), 6);
  EXPECT_EQ(writes_ahead(1e9, write_ns), 6);
  EXPECT_EQ(writes_ahead(1e9, 250e3), 1);
  EXPECT_EQ(writes_ahead(1e9, 500), most_writes) << "a writing of half a microsecond is none";
  EXPECT_EQ(writes_ahead(0, 1e6), 1) << "the cache is emptied in any case";
}

TEST(HostTime, IsWhatCallsInARowTake) {
  host_time host;
  for (int call = 0; call < 5; ++call) host.see(90e3);
  EXPECT_EQ(host.ns(), 90e3);
}

TEST(HostTime, ACallThatLoadsCodeOrIsHeldUpDoesNotCount) {
  host_time host;
  host.see(5e6);
  EXPECT_EQ(host.ns(), 0);
  host.see(20e3);
  EXPECT_EQ(host.ns(), 20e3);
  host.see(3e6);
  host.see(20e3);
  EXPECT_EQ(host.ns(), 20e3);
}

TEST(HostTime, WhatWasTrueForAWhileIsForgotten) {
  host_time host;
  for (int call = 0; call < 2; ++call) host.see(5e6);
  EXPECT_EQ(host.ns(), most_ahead_ns);
  for (int call = 0; call < 30; ++call) host.see(20e3);
  EXPECT_EQ(host.ns(), 20e3);
}

}  // namespace
}  // namespace hone
