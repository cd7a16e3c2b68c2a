#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hone {

// How one reward that is far above the others of its group is kept from deciding the whole update.
enum class outlier_rule {
  // Advantages are clipped to plus and minus the limit, and the mean that the clip has left is
  // subtracted: what the best completion loses to the clip is not charged to the others.
  recentre,
  // Rewards are smoothed before groups are formed (CUDA-L1, arXiv 2507.14111, section 3.2): they
  // are standardized over all rewards of the step and clipped to plus and minus the limit.
  // Advantages are not clipped.
  smooth,
};
// Returns the rule's name in the configuration.
std::string_view name_of(outlier_rule rule);
// Returns nullopt for an unknown name.
std::optional<outlier_rule> outlier_rule_named(std::string_view name);

struct advantage_options {
  outlier_rule outliers = outlier_rule::recentre;
  double limit = 1.5;  // in standard deviations; in rewards, if advantages are not scaled
  // Whether advantages are divided by the deviation of their group's rewards. If not, groups whose
  // rewards hardly differ weigh little (Dr. GRPO: Liu et al. 2025, arXiv 2503.20783, section 3.2).
  bool scaled = true;
};

// Returns the advantages of a group's rewards: (r - mean) / (max(std, noise) + 1e-6 of the largest
// absolute reward), with the population standard deviation, in double precision. They sum to 0.
// Equal rewards give zeros. `noise` is a difference of rewards that says nothing: without it, a
// group of equal programs would be an update of full strength in a random direction. Source: Shao
// et al. 2024 (arXiv 2402.03300), section 4.1, without noise. Unless they are `scaled`, they are
// r - mean.
std::vector<double> group_advantages(std::span<const double> rewards, bool scaled = true,
                                     double noise = 0);

// The rewards of a group, and the difference of them that says nothing.
struct rewarded_group {
  std::vector<double> rewards;
  double noise = 0;
};

// Returns the advantages of the groups of one step, under an outlier rule. The result has the shape
// of the rewards, and each group of it sums to 0.
std::vector<std::vector<double>> step_advantages(const std::vector<rewarded_group>& groups,
                                                 const advantage_options& o);

}  // namespace hone
