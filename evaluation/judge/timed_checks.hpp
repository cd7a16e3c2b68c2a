#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// Judges a call by the reference in its own types first, and by its float64 run only if that does
// not agree. Verification has shown how exact the program is, and a timed call that is wrong
// disagrees with both. `judge` compares one call; `totals` gets the errors of the judgement that
// counts.
program_result<void> judge_by_degrees(
    error_totals& totals,
    const std::function<program_result<void>(exactness with, error_totals& totals)>& judge);

// Decides which calls of a candidate are checked while one case is timed, and checks them. Confined
// to one thread.
class timed_checks {
 public:
  // Checks one call. Without a distribution, that is a call of the last run. With one, it is a call
  // of an uncounted run that looks like the last one, and whose inputs are drawn from that
  // distribution. `totals` gets the errors of that call alone.
  using check_function =
      std::function<program_result<void>(std::optional<distribution> how, error_totals& totals)>;

  // `listed`: the distributions that the task lists.
  timed_checks(std::vector<distribution> listed, random_stream& random, check_function check);
  // Checks one call, and at random times also one with another distribution than `declared`, each
  // of them in turn. Throws timing_failure.
  void check();
  // Checks one call for every distribution. After the last batch, this catches a program that is
  // right until it has been called a certain number of times. Throws timing_failure.
  void check_all();

 private:
  void check_one(std::optional<distribution> how);

  random_stream* random_;
  check_function check_;
  std::vector<distribution> others_;  // except `declared`
  std::size_t next_ = 0;              // index into others_, which is reshuffled as it is used
  second_chance chance_;
};

}  // namespace hone
