#pragma once

#include <optional>
#include <string>

#include "evaluation/program/failure.hpp"

namespace hone {

// Return parts of an optional failure, for expectations: OK or an empty text if there is no
// failure.

inline Outcome outcome_of(const std::optional<program_failure>& failure) {
  return failure ? failure->outcome : Outcome::OK;
}
inline std::string kind_of(const std::optional<program_failure>& failure) {
  return failure ? failure->kind : "";
}
inline std::string message_of(const std::optional<program_failure>& failure) {
  return failure ? failure->message : "";
}
template <class T>
Outcome outcome_of(const program_result<T>& result) {
  return result ? Outcome::OK : result.error().outcome;
}
template <class T>
std::string message_of(const program_result<T>& result) {
  return result ? "" : result.error().message;
}

}  // namespace hone
