#pragma once

#include <functional>
#include <vector>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/judge/random_values.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Draws the distributions of rounds, and checks calls of a candidate while one case is timed. A
// call is checked after it was made, so that no program can tell checked calls from scored ones.
// Confined to one thread.
class timed_checks {
 public:
  // Checks a random call of the candidate's last run and adds its errors to the argument.
  using check_function = std::function<program_result<void>(worst_errors& totals)>;

  // `usable`: the distributions that checks may use, see usable_distributions().
  timed_checks(std::vector<distribution> usable, random_stream& random, check_function check);
  // Returns the distribution of the next round: `declared`, or one of the others in one round of
  // four, whatever the rounds before were. The others take turns.
  distribution draw();
  // Returns true if any round may have another distribution than `declared`.
  bool has_others() const { return !others_.empty(); }
  // Checks a call. Throws timing_failure.
  void check();

 private:
  random_stream* random_;
  check_function check_;
  // The usable distributions except `declared`. With `outliers`, also single outliers.
  std::vector<distribution> others_;
  distribution drawn_ = distribution::declared;  // of the current round
  std::size_t next_ = 0;  // index into others_, which is reshuffled as it is used
};

// Returns the distributions of `listed` that checks may use: those that change something, and with
// which the reference runs and gives as many numbers as with `declared`. `gives_numbers` tries one.
std::vector<distribution> usable_distributions(
    const task& t, const std::function<bool(distribution)>& gives_numbers);

}  // namespace hone
