#include "policy/trainer.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

#include "policy/policy_device.hpp"
#include "policy/transformer.hpp"

namespace hone {
namespace {

// Concatenated sequences for decoder::logits_at, with the tokens to predict. M is the number of
// these tokens.
struct packed {
  at::Tensor tokens;  // [N] (int64)
  std::vector<std::int64_t> lengths;
  at::Tensor rows;     // [M] (int64): positions in `tokens` whose logits predict the targets
  at::Tensor targets;  // [M] (int64)
};

struct sequence {
  std::vector<token_id> tokens;
  std::size_t first_target = 1;  // index of the first token to predict
};

packed pack(std::span<const sequence* const> sequences, const at::Device& device) {
  packed p;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> targets;
  for (const sequence* s : sequences) {
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

// Text of a checkpoint that holds the state of the trainer's random stream.
constexpr const char* random_key = "trainer.random";

// One distinct completion of a group.
struct weighted_rollout {
  sequence all;             // prompt and completion
  std::vector<float> then;  // ln p of the completion's tokens when they were sampled
  double advantage = 0;
  double weight = 0;  // share of this completion in the group; grpo_update() normalises it
};

}  // namespace

struct trainer::state {
  options chosen;
  std::filesystem::path policy;
  decoder network;
  text_codec codec;
  decoder_weights weights;
  std::unique_ptr<optimizer> adam;
  decoder_weights reference;
  std::mt19937_64 random;
  at::Device device;
  std::uint64_t skipped = 0;
  std::uint64_t tokens_trained_on = 0;

  state(const std::filesystem::path& folder, const options& o)
      : chosen(o),
        policy(folder),
        network(decoder_config::load(folder / "config.json")),
        codec(text_codec::load(folder, o.chat)),
        random(o.seed),
        device(o.device) {}

  sequence join(const std::vector<token_id>& prompt,
                const std::vector<token_id>& completion) const {
    sequence s{prompt, prompt.size()};
    s.tokens.insert(s.tokens.end(), completion.begin(), completion.end());
    s.tokens.resize(std::min(s.tokens.size(), static_cast<std::size_t>(network.config().context)));
    return s;
  }
  std::vector<weighted_rollout> distinct_rollouts(std::span<const rollout_group_example> groups,
                                                  const advantage_options& o,
                                                  std::size_t& used) const;
  // Makes an update, or skips it. Returns the gradient norm, or nullopt for a skipped update.
  std::optional<double> update(double rate) {
    const double norm = adam->step(rate);
    if (std::isfinite(norm)) return norm;
    ++skipped;
    return std::nullopt;
  }
  void accumulate(std::span<const weighted_rollout* const> batch, const grpo_step_options& o,
                  std::map<std::string, double>& sums) const;
};

trainer::trainer(const std::filesystem::path& policy, bool random_weights, const options& o) {
  prepare_policy_device(o.device);
  state_ = std::make_unique<state>(policy, o);
  const decoder_config& config = state_->network.config();
  const decoder_weights initial = random_weights ? decoder_weights::random(config, o.seed)
                                                 : decoder_weights::load(policy, config);
  if (const auto damaged = initial.find_not_finite())
    throw policy_error(policy.string() + ": the tensor " + *damaged +
                       " holds values that are not finite");
  state_->weights = initial.to(o.device, config.dtype);
  state_->adam = std::make_unique<optimizer>(state_->weights, o.optimizer);
}

trainer::~trainer() = default;

const text_codec& trainer::codec() const { return state_->codec; }
std::int64_t trainer::context() const { return state_->network.config().context; }

double trainer::sft_update(std::span<const sft_example> batch, double rate, double prompt_weight) {
  std::vector<sequence> sequences;
  std::vector<float> weights;
  for (const sft_example& example : batch) {
    sequence s = state_->join(example.prompt, example.completion);
    const std::size_t prompt = std::min(example.prompt.size(), s.tokens.size());
    s.first_target = prompt_weight > 0 ? 1 : prompt;
    for (std::size_t i = std::max<std::size_t>(1, s.first_target); i < s.tokens.size(); ++i)
      weights.push_back(i < prompt ? static_cast<float>(prompt_weight) : 1.0F);
    sequences.push_back(std::move(s));
  }
  std::vector<const sequence*> pointers;
  for (const sequence& s : sequences) pointers.push_back(&s);
  const packed p = pack(pointers, state_->device);
  state_->tokens_trained_on += static_cast<std::uint64_t>(p.tokens.size(0));
  const at::Tensor loss =
      sft_loss(state_->network.logits_at(state_->weights, p.tokens, p.lengths, p.rows), p.targets,
               floats(weights, state_->device));
  loss.backward();
  state_->update(rate);
  return loss.item<double>();
}

// Returns one entry per distinct completion of the groups that can be used, so that the network
// processes a repeated completion once. `used` counts these groups.
std::vector<weighted_rollout> trainer::state::distinct_rollouts(
    std::span<const rollout_group_example> groups, const advantage_options& o,
    std::size_t& used) const {
  std::vector<std::vector<double>> rewards;
  for (const rollout_group_example& group : groups) {
    rewards.emplace_back();
    for (const auto& r : group.rollouts) {
      if (r.counts) rewards.back().push_back(r.reward);
    }
  }
  const std::vector<std::vector<double>> advantages = step_advantages(rewards, o);
  std::vector<weighted_rollout> all;
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
        all.push_back({join(group.prompt, r.tokens), r.log_probabilities, advantage, 0});
        all.back().then.resize(all.back().all.tokens.size() -
                               std::min(group.prompt.size(), all.back().all.tokens.size()));
      }
      all[at->second].weight += 1.0 / static_cast<double>(its.size());
    }
  }
  return all;
}

void trainer::state::accumulate(std::span<const weighted_rollout* const> batch,
                                const grpo_step_options& o,
                                std::map<std::string, double>& sums) const {
  std::vector<const sequence*> sequences;
  std::vector<float> then;
  std::vector<std::int64_t> owner;
  std::vector<float> advantages;
  std::vector<float> shares;
  for (const weighted_rollout* r : batch) {
    sequences.push_back(&r->all);
    then.insert(then.end(), r->then.begin(), r->then.end());
    owner.insert(owner.end(), r->then.size(), static_cast<std::int64_t>(advantages.size()));
    advantages.push_back(static_cast<float>(r->advantage));
    shares.push_back(static_cast<float>(r->weight));
  }
  const packed p = pack(sequences, device);
  const at::Tensor logits = network.logits_at(weights, p.tokens, p.lengths, p.rows);
  const at::Tensor now = token_log_probabilities(logits, p.targets, o.sampling);
  const at::Tensor log_all = at::log_softmax(logits, -1);
  const at::Tensor entropy = -(log_all.exp() * log_all).sum(-1);
  const at::Tensor old = floats(then, device);
  at::Tensor anchor = now.detach();
  if (o.objective.kl_coefficient > 0 && !reference.all().empty()) {
    const c10::NoGradGuard no_gradients;
    anchor = token_log_probabilities(network.logits_at(reference, p.tokens, p.lengths, p.rows),
                                     p.targets, o.sampling);
  }
  const at::Tensor sequence_of = at::tensor(owner, at::kLong).to(device);
  const at::Tensor loss =
      grpo_loss(now, old, anchor, entropy, sequence_of, floats(advantages, device),
                floats(shares, device), o.objective);
  loss.backward();
  const c10::NoGradGuard no_gradients;
  const at::Tensor ratio = (now - old).exp();
  const auto tokens = static_cast<double>(then.size());
  sums["loss"] += loss.item<double>();
  sums["tokens"] += tokens;
  sums["entropy"] += entropy.sum().item<double>();
  sums["clipped"] += ((ratio - 1).abs() > o.objective.clip).sum().item<double>();
  const at::Tensor d = anchor - now;
  sums["kl"] += (d.exp() - d - 1).sum().item<double>();
}

std::map<std::string, double> trainer::grpo_update(std::span<const rollout_group_example> groups,
                                                   double rate, const grpo_step_options& o) {
  std::map<std::string, double> numbers;
  std::size_t used = 0;
  std::vector<weighted_rollout> rollouts = state_->distinct_rollouts(groups, o.advantages, used);
  numbers["groups_used"] = static_cast<double>(used);
  numbers["distinct_completions"] = static_cast<double>(rollouts.size());
  if (rollouts.empty()) return numbers;
  std::shuffle(rollouts.begin(), rollouts.end(), state_->random);
  const auto parts =
      std::clamp<std::size_t>(static_cast<std::size_t>(o.minibatches), 1, rollouts.size());
  std::map<std::string, double> sums;
  double norm = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = rollouts.size() * part / parts;
    const std::size_t end = rollouts.size() * (part + 1) / parts;
    double weight = 0;
    for (std::size_t i = begin; i < end; ++i) weight += rollouts[i].weight;
    std::vector<const weighted_rollout*> batch;
    std::size_t tokens = 0;
    // Sequences of equal length are adjacent, so that they share one attention call.
    std::sort(
        rollouts.begin() + static_cast<std::ptrdiff_t>(begin),
        rollouts.begin() + static_cast<std::ptrdiff_t>(end),
        [](const auto& a, const auto& b) { return a.all.tokens.size() < b.all.tokens.size(); });
    for (std::size_t i = begin; i < end; ++i) {
      rollouts[i].weight /= weight;
      batch.push_back(&rollouts[i]);
      tokens += rollouts[i].all.tokens.size();
      if (i + 1 < end && static_cast<std::int64_t>(tokens) < state_->chosen.micro_batch_tokens)
        continue;
      state_->accumulate(batch, o, sums);
      state_->tokens_trained_on += tokens;
      batch.clear();
      tokens = 0;
    }
    norm = state_->update(rate).value_or(norm);
  }
  numbers["loss"] = sums["loss"] / static_cast<double>(parts);
  numbers["entropy"] = sums["entropy"] / sums["tokens"];
  numbers["clipped_share"] = sums["clipped"] / sums["tokens"];
  if (o.objective.kl_coefficient > 0) numbers["kl"] = sums["kl"] / sums["tokens"];
  numbers["gradient_norm"] = norm;
  return numbers;
}

std::uint64_t trainer::skipped_updates() const { return state_->skipped; }
std::uint64_t trainer::tokens_trained_on() const { return state_->tokens_trained_on; }
std::int64_t trainer::updates() const { return state_->adam->steps(); }

void trainer::keep_reference() {
  state_->reference = decoder_weights();
  for (const auto& [name, tensor] : state_->weights.all())
    state_->reference.all()[name] = tensor.detach().clone();
}

void trainer::load_reference(const std::filesystem::path& checkpoint) {
  const decoder_config& config = state_->network.config();
  state_->reference =
      decoder_weights::load(checkpoint, config).to(state_->chosen.device, config.dtype);
}

void trainer::restart_optimiser() { state_->adam->restart(); }

taken_checkpoint trainer::take_checkpoint(training_progress progress) const {
  const c10::NoGradGuard no_gradients;
  std::ostringstream random;
  random << state_->random;
  progress.texts[random_key] = random.str();
  return
      [policy = state_->policy, weights = state_->weights.to("cpu", state_->network.config().dtype),
       moments = state_->adam->moments(),
       progress = std::move(progress)](const std::filesystem::path& folder) {
        save_checkpoint(folder, policy, weights, &moments, progress);
      };
}

training_progress trainer::load(const std::filesystem::path& checkpoint) {
  const decoder_config& config = state_->network.config();
  state_->weights =
      decoder_weights::load(checkpoint, config).to(state_->chosen.device, config.dtype);
  state_->adam = std::make_unique<optimizer>(state_->weights, state_->chosen.optimizer);
  state_->adam->load(checkpoint / "optimizer.safetensors");
  training_progress progress = load_training_progress(checkpoint);
  // A checkpoint of an earlier version of Hone lacks the state.
  if (const auto random = progress.texts.find(random_key); random != progress.texts.end())
    std::istringstream(random->second) >> state_->random;
  return progress;
}

}  // namespace hone
