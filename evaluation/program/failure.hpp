#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "messages/names.hpp"

namespace hone {

// The reason why a step of an evaluation did not succeed. Failures are values: exceptions are
// reserved for broken machines and broken tasks.
struct program_failure {
  Outcome outcome = Outcome::INFRASTRUCTURE;  // never OK
  std::string kind;  // set for the outcome `cheating`, see doc/evaluation.md
  std::string message;
  // True if the machine may have been at fault, so that another attempt may succeed. Such a failure
  // must not be remembered.
  bool is_transient = false;
};

// Either the result of a step, or the reason why it failed.
template <class T>
using program_result = tl::expected<T, program_failure>;

// For return statements of functions that return a program_result.
inline tl::unexpected<program_failure> failed(Outcome outcome, std::string message) {
  return tl::make_unexpected(program_failure{outcome, "", std::move(message)});
}
inline tl::unexpected<program_failure> cheated(std::string kind, std::string message) {
  return tl::make_unexpected(
      program_failure{Outcome::CHEATING, std::move(kind), std::move(message)});
}
inline tl::unexpected<program_failure> failed(program_failure why) {
  return tl::make_unexpected(std::move(why));
}

}  // namespace hone
