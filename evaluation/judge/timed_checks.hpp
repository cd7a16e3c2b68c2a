#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/timing_rules.hpp"
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
  // Checks a random call of the candidate's last run, one with the distribution `wanted` if there
  // is any.
  using check_function = std::function<checked_call(std::optional<distribution> wanted)>;

  // `usable`: the distributions that checks may use, see usable_distributions().
  timed_checks(std::vector<distribution> usable, random_stream& random, check_function check);
  // Draws the next round, whatever the rounds before were. One round in `others_one_in` does not
  // count, and its calls have up to three other distributions than `declared` in turn. `weights`
  // comes alone, because parameters belong to a whole round.
  drawn_round draw(std::uint64_t seed, const timing_rules& rules);
  // Returns the rounds after those of the timing, of whose calls every one is checked: one of other
  // distributions than `declared`, and one of `weights`.
  std::vector<drawn_round> draw_last(std::uint64_t seed, const timing_rules& rules);
  // Checks a call, as check_function does. Throws timing_failure.
  void check(std::optional<distribution> wanted = std::nullopt);

 private:
  distribution next_other();
  drawn_round draw_others(std::uint64_t seed, std::size_t most);

  random_stream* random_;
  check_function check_;
  // The usable distributions except `declared` and `weights`. With `outliers`, also single
  // outliers.
  std::vector<distribution> others_;
  bool has_weights_ = false;
  std::size_t next_ = 0;  // index into others_, which is reshuffled as it is used
};

// Returns a random one of `calls` calls, one with the distribution `wanted` if there is any.
std::size_t draw_call(std::size_t calls, std::optional<distribution> wanted, random_stream& random,
                      const std::function<distribution(std::size_t)>& distribution_of);

// Returns the distributions of `listed` that checks may use: those that change something, and with
// which the reference runs and gives as many numbers as with `declared`, no matter which input they
// change. `gives_numbers` tries the inputs of a seed.
std::vector<distribution> usable_distributions(
    const task& t, random_stream& random,
    const std::function<bool(distribution, std::uint64_t)>& gives_numbers);

}  // namespace hone
