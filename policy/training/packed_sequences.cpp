#include "policy/training/packed_sequences.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace hone {

packed pack(std::span<const token_sequence* const> sequences, const at::Device& device) {
  packed p;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> targets;
  for (const token_sequence* s : sequences) {
    const auto begin = static_cast<std::int64_t>(tokens.size());
    tokens.insert(tokens.end(), s->tokens.begin(), s->tokens.end());
    p.lengths.push_back(static_cast<std::int64_t>(s->tokens.size()));
    for (std::size_t i = std::max<std::size_t>(1, s->first_target); i < s->tokens.size(); ++i) {
      rows.push_back(begin + static_cast<std::int64_t>(i) - 1);
      targets.push_back(s->tokens[i]);
    }
  }
  const auto on_device = [&](const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong).to(device);
  };
  p.tokens = on_device(tokens);
  p.rows = on_device(rows);
  p.targets = on_device(targets);
  return p;
}

at::Tensor floats(const std::vector<float>& values, const at::Device& device) {
  return at::tensor(values, at::kFloat).to(device);
}

weighted_sequence weigh(const sft_example& example, std::size_t context, double prompt_weight) {
  weighted_sequence s{join(example.prompt, example.completion, context), {}};
  const std::size_t prompt = std::min(example.prompt.size(), s.all.tokens.size());
  s.all.first_target = prompt_weight > 0 ? 1 : prompt;
  for (std::size_t i = std::max<std::size_t>(1, s.all.first_target); i < s.all.tokens.size(); ++i)
    s.weights.push_back(i < prompt ? static_cast<float>(prompt_weight) : 1.0F);
  return s;
}

columns::columns(std::span<distinct_rollout* const> rollouts, const at::Device& device) {
  std::vector<float> recorded;
  std::vector<float> before;
  std::vector<float> current;
  std::vector<std::int64_t> owner;
  std::vector<float> its_advantages;
  std::vector<float> its_weights;
  for (const distinct_rollout* r : rollouts) {
    sequences.push_back(&r->all);
    recorded.insert(recorded.end(), r->then.begin(), r->then.end());
    before.insert(before.end(), r->proximal.begin(), r->proximal.end());
    for (std::size_t i = 0; i < r->then.size(); ++i)
      current.push_back(i >= r->first_current ? 1.0F : 0.0F);
    owner.insert(owner.end(), r->then.size(), static_cast<std::int64_t>(its_advantages.size()));
    its_advantages.push_back(static_cast<float>(r->advantage));
    its_weights.push_back(static_cast<float>(r->weight));
  }
  then = floats(recorded, device);
  if (!before.empty()) proximal = floats(before, device);
  is_current = floats(current, device);
  sequence = at::tensor(owner, at::kLong).to(device);
  advantages = floats(its_advantages, device);
  weights = floats(its_weights, device);
}

}  // namespace hone
