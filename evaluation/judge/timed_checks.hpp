#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/verification.hpp"

namespace hone {

// Judges a call by the reference as it is, and only if that does not agree, by its run in float64
// as well: what was verified before has shown how exact it is, and a timed call that is wrong is
// wrong for either. `judge` compares one call; `totals` is of the judgement that counts.
program_failure judge_by_degrees(
    verification_result& totals,
    const std::function<program_failure(exactness with, verification_result& totals)>& judge);

// Which calls of a candidate are looked at while it is timed, on every kind of device. One case's
// timing; one thread.
class timed_checks {
 public:
  // Compares one call and says what is wrong: a call of the last run, or, with a distribution, of
  // another run that looks like that one and does not count, in which one call finds contents so
  // drawn. `totals` is that call's alone.
  using look_at =
      std::function<program_failure(std::optional<distribution> how, verification_result& totals)>;

  // `listed`: the distributions that the task lists.
  timed_checks(std::vector<distribution> listed, random_stream& random, look_at look);
  // Looks at one call, and now and then at one that meets another distribution than the declared
  // one, all of them in turn. Throws timing_failure.
  void check();
  // The same for every distribution, behind the last sample: a program that is right until it has
  // been called so many times, and wrong in the calls that are timed from there on, ends here.
  // Throws timing_failure.
  void check_all();

 private:
  void check_one(std::optional<distribution> how);

  random_stream* random_;
  look_at look_;
  std::vector<distribution> others_;  // than the declared one
  std::size_t next_ = 0;  // of the others, in an order that is drawn anew each time around
  second_chance chance_;
};

}  // namespace hone
