#include "policy/training/distinct_rollouts.hpp"

#include <algorithm>
#include <map>

namespace hone {

token_sequence join(const std::vector<token_id>& prompt, const std::vector<token_id>& completion,
                    std::size_t context) {
  token_sequence s{prompt, prompt.size()};
  s.tokens.insert(s.tokens.end(), completion.begin(), completion.end());
  s.tokens.resize(std::min(s.tokens.size(), context));
  return s;
}

std::vector<distinct_rollout> distinct_rollouts(std::span<const rollout_group_example> groups,
                                                const advantage_options& o, std::size_t context,
                                                std::size_t& used) {
  used = 0;
  std::vector<rewarded_group> rewards;
  for (const rollout_group_example& group : groups) {
    rewards.push_back({{}, group.noise});
    for (const auto& r : group.rollouts) {
      if (r.counts) rewards.back().rewards.push_back(r.reward);
    }
  }
  const std::vector<std::vector<double>> advantages = step_advantages(rewards, o);
  std::vector<distinct_rollout> all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const rollout_group_example& group = groups[g];
    const std::vector<double>& its = advantages[g];
    // A group of one, or of equal rewards, has no advantages.
    if (std::all_of(its.begin(), its.end(), [](double a) { return a == 0; })) continue;
    ++used;
    std::map<std::vector<token_id>, std::size_t> seen;
    std::size_t index = 0;
    for (const auto& r : group.rollouts) {
      if (!r.counts) continue;
      const double advantage = its[index++];
      const auto [at, fresh] = seen.emplace(r.tokens, all.size());
      if (fresh) {
        all.push_back({.all = join(group.prompt, r.tokens, context),
                       .then = r.log_probabilities,
                       .first_current = r.tokens.size() - std::min(r.current, r.tokens.size()),
                       .advantage = advantage});
        all.back().then.resize(all.back().all.tokens.size() -
                               std::min(group.prompt.size(), all.back().all.tokens.size()));
      }
      all[at->second].share += 1.0 / static_cast<double>(its.size());
      all[at->second].draws += 1;
    }
  }
  return all;
}

void weigh(std::span<distinct_rollout> rollouts, loss_mean mean, std::size_t longest) {
  // Groups count the same in a mean over sequences; where tokens do, so do draws, of whichever
  // group.
  const auto part = [mean](const distinct_rollout& r) {
    return mean == loss_mean::sequence ? r.share : r.draws;
  };
  double whole = 0;
  for (const distinct_rollout& r : rollouts) whole += part(r);
  std::vector<double> shares;
  std::vector<std::size_t> lengths;
  for (const distinct_rollout& r : rollouts) {
    shares.push_back(part(r) / whole);
    lengths.push_back(r.then.size());
  }
  const std::vector<double> weights = sequence_weights(mean, shares, lengths, longest);
  for (std::size_t i = 0; i < rollouts.size(); ++i) rollouts[i].weight = weights[i];
}

}  // namespace hone
