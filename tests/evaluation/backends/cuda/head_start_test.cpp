#include "evaluation/backends/cuda/head_start.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr double flush_ns = 60e3;  // for writing four times the L2 cache of an H200

TEST(FlushesAhead, IsOneForAFewLaunches) {
  EXPECT_EQ(flushes_ahead(0, flush_ns), 1);
  EXPECT_EQ(flushes_ahead(10e3, flush_ns), 1);
  EXPECT_EQ(flushes_ahead(40e3, flush_ns), 1);
  EXPECT_EQ(flushes_ahead(90e3, 0), 1) << "the time of a flush is not known yet";
}

TEST(FlushesAhead, CoverOneAndAHalfTimesTheHostsTimeForManyLaunches) {
  EXPECT_EQ(flushes_ahead(100e3, flush_ns), 3);
}

TEST(FlushesAhead, TakeAtMostFourTenthsOfAMillisecond) {
  EXPECT_EQ(flushes_ahead(3e6, flush_ns), 6);
  EXPECT_EQ(flushes_ahead(1e9, flush_ns), 6);
  EXPECT_EQ(flushes_ahead(1e9, 250e3), 1);
  EXPECT_EQ(flushes_ahead(1e9, 500), max_flushes) << "no flush takes half a microsecond";
  EXPECT_EQ(flushes_ahead(0, 1e6), 1) << "the cache is flushed in any case";
}

TEST(HostTime, IsTheTimeOfCallsInARow) {
  host_time host;
  for (int call = 0; call < 5; ++call) host.see(90e3);
  EXPECT_EQ(host.ns(), 90e3);
}

TEST(HostTime, IgnoresASingleSlowCall) {
  host_time host;
  host.see(5e6);
  EXPECT_EQ(host.ns(), 0);
  host.see(20e3);
  EXPECT_EQ(host.ns(), 20e3);
  host.see(3e6);
  host.see(20e3);
  EXPECT_EQ(host.ns(), 20e3);
}

TEST(HostTime, DecaysToTheTimeOfRecentCalls) {
  host_time host;
  for (int call = 0; call < 2; ++call) host.see(5e6);
  EXPECT_EQ(host.ns(), max_head_start_ns);
  for (int call = 0; call < 30; ++call) host.see(20e3);
  EXPECT_EQ(host.ns(), 20e3);
}

host_time host_that_takes(double ns) {
  host_time host;
  for (int call = 0; call < 2; ++call) host.see(ns);
  return host;
}

TEST(FlushesOfARound, AreWhatTheSlowerHostNeeds) {
  const host_time quick = host_that_takes(15e3);
  const host_time slow = host_that_takes(100e3);
  EXPECT_EQ(flushes_of_round(quick, quick, flush_ns), 1);
  EXPECT_EQ(flushes_of_round(slow, quick, flush_ns), 3);
  EXPECT_EQ(flushes_of_round(quick, slow, flush_ns), 3);
  EXPECT_EQ(flushes_of_round(slow, slow, 0), 1)
      << "the time of the reference's flush is not known yet";
}

}  // namespace
}  // namespace hone
