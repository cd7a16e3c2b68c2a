#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/text/tokenizer.hpp"
#include "policy/training/advantages.hpp"
#include "policy/training/objectives.hpp"

namespace hone {

// A group as a policy gradient trains on it: one prompt, its completions and their rewards.
struct rollout_group_example {
  struct rollout {
    std::vector<token_id> tokens;
    std::vector<float> log_probabilities;  // ln p of each token when it was sampled
    double reward = 0;
    bool counts = true;  // false: the rollout is left out of the group
    // Of the last tokens, how many the trainer's weights have sampled; the others are of earlier
    // versions.
    std::size_t current = 0;
  };
  std::vector<token_id> prompt;
  std::vector<rollout> rollouts;
  double noise = 0;  // a difference of rewards that says nothing
};

// Tokens that the network reads, and which of them it is to predict.
struct token_sequence {
  std::vector<token_id> tokens;
  std::size_t first_target = 1;
};

// Returns a prompt and its completion as one sequence of at most `context` tokens, whose targets
// are the completion's.
token_sequence join(const std::vector<token_id>& prompt, const std::vector<token_id>& completion,
                    std::size_t context);

// A distinct completion of a group. The network processes a completion that was drawn several times
// once.
struct distinct_rollout {
  token_sequence all;             // prompt and completion
  std::vector<float> then{};      // ln p of the completion's tokens when they were sampled
  std::vector<float> proximal{};  // ln p before a step's first update; empty if it is not needed
  std::size_t first_current = 0;  // from this token on, the trainer's weights have sampled
  double advantage = 0;
  double share = 0;   // of this completion among those of its group
  double draws = 0;   // how often it was drawn
  double weight = 0;  // in the objective of its update
};

// Returns the distinct completions of the groups that can be used; `used` is set to their number. A
// group with fewer than two rollouts that count, or with equal rewards, has no advantages.
std::vector<distinct_rollout> distinct_rollouts(std::span<const rollout_group_example> groups,
                                                const advantage_options& o, std::size_t context,
                                                std::size_t& used);

// Gives the rollouts of an update their weights in its objective. `longest`: most tokens of a
// completion.
void weigh(std::span<distinct_rollout> rollouts, loss_mean mean, std::size_t longest);

// Calls `work` with one micro batch after the other: a span of pointers to items, whose member
// `all` is a token_sequence. Each is closed as soon as it holds this many tokens.
template <class Item, class Work>
void for_micro_batches(std::span<Item> items, std::size_t tokens, const Work& work) {
  std::vector<Item*> batch;
  std::size_t held = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    batch.push_back(&items[i]);
    held += items[i].all.tokens.size();
    if (i + 1 < items.size() && held < tokens) continue;
    work(std::span<Item* const>(batch));
    batch.clear();
    held = 0;
  }
}

}  // namespace hone
