#pragma once

#include <optional>
#include <string>

#include "evaluation/program/failure.hpp"
#include "tests/support/refusal.hpp"

namespace hone {

// Returns a message, which must not be one of a library.
inline std::string plain(const std::string& message) {
  testing_support::expect_plain_messages(message);
  return message;
}

// Return parts of an optional failure: OK or an empty text if there is no failure.
inline Outcome outcome_of(const std::optional<program_failure>& failure) {
  return failure ? failure->outcome : Outcome::OK;
}
inline std::string kind_of(const std::optional<program_failure>& failure) {
  return failure ? failure->kind : "";
}
inline std::string message_of(const std::optional<program_failure>& failure) {
  return failure ? plain(failure->message) : "";
}
template <class T>
Outcome outcome_of(const program_result<T>& result) {
  return result ? Outcome::OK : result.error().outcome;
}
template <class T>
std::string message_of(const program_result<T>& result) {
  return result ? "" : plain(result.error().message);
}

}  // namespace hone
