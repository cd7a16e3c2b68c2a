#pragma once

#include <functional>
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
  using distributions = std::function<bool(distribution)>;
  // Checks a random call of the candidate's last run, one of the `preferred` distributions if there
  // is any.
  using check_function = std::function<checked_call(const distributions& preferred)>;

  // `usable`: the distributions that checks may use, see usable_distributions().
  timed_checks(std::vector<distribution> usable, random_stream& random, check_function check);
  // Draws the next round, whatever the rounds before were. One call in `others_one_in` has another
  // distribution than `declared`, or where calls are not mixed, all calls of one round in this
  // number, which does not count, have up to three others in turn. `weights` comes alone in a round
  // that does not count, because parameters belong to a whole round.
  drawn_round draw(std::uint64_t seed, const timing_rules& rules);
  // Returns true if any round may have another distribution than `declared`.
  bool has_others() const { return !others_.empty() || has_weights_; }
  // Returns the rounds after those of the timing, of whose calls every one is checked: one of other
  // distributions than `declared`, and one of `weights`.
  std::vector<drawn_round> draw_last(std::uint64_t seed, const timing_rules& rules);
  // Check a call: a random one; one with other contents than `declared`, if there is one; one with
  // these contents. Throw timing_failure.
  void check() {
    check([](distribution) { return true; });
  }
  void check_other() {
    check([](distribution how) { return how != distribution::declared; });
  }
  void check_one_of(distribution wanted) {
    check([wanted](distribution how) { return how == wanted; });
  }

 private:
  distribution next_other();
  drawn_round draw_others(std::uint64_t seed, std::size_t most);
  void check(const distributions& preferred);

  random_stream* random_;
  check_function check_;
  // The usable distributions except `declared` and `weights`. With `outliers`, also single
  // outliers.
  std::vector<distribution> others_;
  bool has_weights_ = false;
  std::size_t next_ = 0;  // index into others_, which is reshuffled as it is used
};

// Returns a random one of `calls` calls, one of the `preferred` distributions if there is any.
std::size_t draw_call(std::size_t calls, const timed_checks::distributions& preferred,
                      random_stream& random,
                      const std::function<distribution(std::size_t)>& distribution_of);

// Returns the distributions of `listed` that checks may use: those that change something, and with
// which the reference runs and gives as many numbers as with `declared`. `gives_numbers` tries one.
std::vector<distribution> usable_distributions(
    const task& t, const std::function<bool(distribution)>& gives_numbers);

}  // namespace hone
