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
  struct checked_call {
    distribution how = distribution::declared;  // of its contents
    program_result<void> result;
  };
  // Checks a random call of the candidate's last run.
  using check_function = std::function<checked_call()>;

  // `usable`: the distributions that checks may use, see usable_distributions().
  timed_checks(std::vector<distribution> usable, random_stream& random, check_function check);
  // Returns the distributions of the calls of the next round: `declared`, or in one round of
  // `others_one_in`, whatever the rounds before were, up to three others, which take turns. Of
  // these, `weights` comes alone, because parameters belong to a whole round.
  std::vector<distribution> draw(std::uint64_t others_one_in);
  // Returns true if any round may have another distribution than `declared`.
  bool has_others() const { return !others_.empty(); }
  // Checks a call. Throws timing_failure.
  void check();

 private:
  random_stream* random_;
  check_function check_;
  // The usable distributions except `declared`. With `outliers`, also single outliers.
  std::vector<distribution> others_;
  std::size_t next_ = 0;  // index into others_, which is reshuffled as it is used
};

// Returns the distributions of `listed` that checks may use: those that change something, and with
// which the reference runs and gives as many numbers as with `declared`. `gives_numbers` tries one.
std::vector<distribution> usable_distributions(
    const task& t, const std::function<bool(distribution)>& gives_numbers);

}  // namespace hone
