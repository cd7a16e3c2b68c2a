#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/raw_messages.hpp"

namespace hone::testing_support {

// Fails the test if a program has said what only a programmer understands.
inline void expect_plain_messages(const std::string& said) {
  EXPECT_FALSE(is_raw(said)) << "a message of a library: " << said;
}

// Returns the message of the Error that an action throws, or "" if it throws none. Fails the test
// if it is the message of a library.
template <class Error>
std::string refusal_of(const auto& action) {
  try {
    action();
  } catch (const Error& e) {
    expect_plain_messages(e.what());
    return e.what();
  }
  return "";
}

}  // namespace hone::testing_support
