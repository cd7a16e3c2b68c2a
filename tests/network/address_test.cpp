#include "network/address.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(IsLoopback, HoldsForAddressesThatSurelyAreThisMachine) {
  for (const char* one : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1", "::1:1"})
    EXPECT_TRUE(is_loopback(parse_address(one))) << one;
  for (const char* one : {"10.0.0.1:1", "127.example.org:1", "0.0.0.0:1", "head:1", "[::]:1"})
    EXPECT_FALSE(is_loopback(parse_address(one))) << one;
}

}  // namespace
}  // namespace hone
