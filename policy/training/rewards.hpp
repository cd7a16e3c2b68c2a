#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hone {

// The reward of a completion that is ok, by its speed-up s. All others get 0.
enum class reward_shape {
  speedup,  // s (CUDA-L1, arXiv 2507.14111)
  log,      // ln(1 + s): a small gain stays visible in a group that has a large one
  capped,   // min(s, cap) (Dr. Kernel, whose cap is 3)
  // 1 if it works, 2 if it is also faster than the eager reference, 3 if it is also faster than the
  // fastest baseline; each by at least 5 % (after CUDA Agent).
  tiers,
  // 1 + ln(s / s0) / 2, at least 0.2: s0 is the best score that the prompt shows, or 1. A failure,
  // a slow program and a fast one stay apart, however fast the task's best programs are.
  relative,
};
// The baseline of a speed-up: the eager reference, or the fastest baseline that was timed.
enum class reward_baseline { eager, best };
// The reward of a completion whose program is an exemplar that its prompt shows.
enum class copy_rule {
  paid,          // its full reward
  as_neighbors,  // at most the mean reward of the group's other programs that work, and at most
                 // that of a speed-up of 1 if there are none
};

// Return a value's name in the configuration, and the value of a name or nullopt.
std::string_view name_of(reward_shape shape);
std::string_view name_of(reward_baseline baseline);
std::string_view name_of(copy_rule rule);
std::optional<reward_shape> reward_shape_named(std::string_view name);
std::optional<reward_baseline> reward_baseline_named(std::string_view name);
std::optional<copy_rule> copy_rule_named(std::string_view name);

struct reward_options {
  reward_shape shape = reward_shape::speedup;
  double cap = 3;  // of the shape `capped`
  reward_baseline baseline = reward_baseline::eager;
  copy_rule copies = copy_rule::paid;
};

// True if rewards depend on how fast the baselines are.
bool needs_baselines(const reward_options& o);

// The facts about a completion that decide its reward.
struct judged_completion {
  bool is_ok = false;
  double speedup = 0;  // over the eager reference
  double over_best_baseline =
      0;                         // speed-up over the fastest baseline, the eager reference included
  bool copies_exemplar = false;  // its program is one that its prompt shows
  double best_shown = 0;         // the highest score that its prompt shows; 0: it shows none
};

// Returns the rewards of a group's completions, in their order.
std::vector<double> group_rewards(const std::vector<judged_completion>& group,
                                  const reward_options& o);
// A relative difference of speed-ups that says nothing. Measurements of a program differ by 0.2 %
// as a rule and by 1.3 % at worst, and a learner has no use for finer differences.
inline constexpr double noise_of_speedups = 0.03;
// The same for screenings.
inline constexpr double noise_of_screenings = 0.06;
// Returns the difference of rewards that says nothing: the mean over the group's completions that
// work of what a relative change by `noise` of their speed-ups changes in their rewards.
double reward_noise(const std::vector<judged_completion>& group, const reward_options& o,
                    double noise = noise_of_speedups);

}  // namespace hone
