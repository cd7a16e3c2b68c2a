#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// Judges a timed call by the reference's run in its own types first, and by the float64 run only if
// the call disagrees with the former. Verification has already shown how exact the program is, and
// a wrong call disagrees with both runs. `judge` compares the call with the expected outputs of one
// exactness; `totals` gets the errors of the judgement that counts.
program_result<void> judge_by_degrees(
    worst_errors& totals,
    const std::function<program_result<void>(exactness with, worst_errors& totals)>& judge);

// Decides which calls of a candidate are checked while one case is timed, and checks them. Confined
// to one thread.
class timed_checks {
 public:
  // Checks one call. Without a distribution, the call is one of the last run. With a distribution,
  // the call is one of an uncounted run that looks like the last one, and the call's inputs are
  // drawn from that distribution. `totals` gets the errors of that call alone.
  using check_function =
      std::function<program_result<void>(std::optional<distribution> how, worst_errors& totals)>;

  // `listed`: the distributions that the task lists.
  timed_checks(std::vector<distribution> listed, random_stream& random, check_function check);
  // Checks one call. At random times it also checks a call with a distribution other than
  // `declared`; all listed ones take turns. Throws timing_failure.
  void check();
  // Checks one call of the last run, and one for each of at most `most` other listed distributions,
  // which are drawn at random. After the last batch, this catches a program that is right only
  // until it has been called a certain number of times. Throws timing_failure.
  void check_at_end(std::size_t most);

 private:
  void check_one(std::optional<distribution> how);
  void check_another();

  random_stream* random_;
  check_function check_;
  // The listed distributions except `declared`. With `outliers`, also single outliers.
  std::vector<distribution> others_;
  std::size_t next_ = 0;  // index into others_, which is reshuffled as it is used
  second_chance chance_;
};

}  // namespace hone
