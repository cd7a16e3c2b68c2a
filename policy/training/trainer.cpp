#include "policy/training/trainer.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <sstream>

#include "messages/value_names.hpp"
#include "policy/network/transformer.hpp"
#include "policy/policy_device.hpp"
#include "policy/training/chunked_head.hpp"
#include "policy/training/packed_sequences.hpp"
#include "policy/training/replica.hpp"

namespace hone {
namespace {

std::int64_t max_logits_on(const std::string& device, const std::string& dtype) {
  constexpr std::int64_t gpu_share = 16;
  const std::uint64_t bytes = gpu_memory_of(device);
  return bytes == 0 ? max_unfused_logits
                    : static_cast<std::int64_t>(bytes / (dtype == "float32" ? 4 : 2) / gpu_share);
}

// Text of a checkpoint that holds the state of the trainer's random stream.
constexpr const char* random_key = "trainer.random";

constexpr std::array<std::string_view, 2> base_names = {"sampler", "trainer"};

}  // namespace

std::string_view name_of(ratio_base base) { return base_names[static_cast<std::size_t>(base)]; }

std::optional<ratio_base> ratio_base_named(std::string_view name) {
  return value_named<ratio_base>(base_names, name);
}

struct trainer::state {
  options chosen;
  std::filesystem::path policy;
  decoder network;
  text_codec codec;
  std::vector<replica> replicas;
  std::unique_ptr<optimizer> adam;  // of the adapters, if there are some, or of all weights
  std::mt19937_64 random;
  std::uint64_t skipped = 0;
  std::uint64_t tokens_trained_on = 0;

  state(const std::filesystem::path& folder, const options& o)
      : chosen(o),
        policy(folder),
        network(load_config_for(o.device, folder, o.dtype), o.adapters.scale()),
        codec(text_codec::load(folder, o.chat)),
        random(o.seed) {
    add_replica(o.device);
    for (const std::string& device : o.more_devices) add_replica(device);
  }

  void add_replica(const std::string& name) {
    prepare_policy_device(name);
    replica& made = replicas.emplace_back(replica{.device = at::Device(name)});
    if (made.device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl of_gpu(made.device.type());
    if (!made.device.has_index()) made.device.set_index(of_gpu.getDevice().index());
    made.stream = of_gpu.getStreamFromGlobalPool(made.device);
  }
  const replica& first() const { return replicas.front(); }
  bool is_adapted() const { return !first().adapters.all().empty(); }
  // Gives every replica these weights or adapters, in this dtype.
  void put(decoder_weights replica::*which, const decoder_weights& from, const std::string& dtype) {
    for (replica& one : replicas) one.*which = from.to(one.device.str(), dtype);
  }
  void make_optimizer() {
    std::vector<decoder_weights*> trained;
    for (replica& one : replicas) trained.push_back(is_adapted() ? &one.adapters : &one.weights);
    adam = std::make_unique<optimizer>(trained, chosen.optimizer);
    for (replica& one : replicas) {
      for (const auto& [name, tensor] : one.adapters.all()) one.weights.all()[name] = tensor;
    }
  }
  // Returns a copy of a replica's weights, adapters merged.
  decoder_weights whole(const replica& of) const {
    decoder_weights copy = merge_adapters(of.weights, chosen.adapters.scale());
    for (auto& [name, tensor] : copy.all()) tensor = tensor.detach().clone();
    return copy;
  }
  std::size_t context() const { return static_cast<std::size_t>(network.config().context); }
  std::size_t micro_batch() const { return static_cast<std::size_t>(chosen.micro_batch_tokens); }
  // Makes an update, or skips it. Returns the gradient norm, or nullopt for a skipped update.
  std::optional<double> update(double rate) {
    const double norm = adam->step(rate);
    if (std::isfinite(norm)) return norm;
    ++skipped;
    return std::nullopt;
  }
  template <class Item>
  void count_tokens(std::span<const Item> items) {
    for (const Item& item : items) tokens_trained_on += item.all.tokens.size();
  }
  // Adds the gradients of a micro batch of supervised fine-tuning. Returns its part of the loss.
  // `whole`: the weights of all tokens of the update.
  at::Tensor add_likelihood(const replica& on, std::span<weighted_sequence* const> examples,
                            double whole) const;
  void note_proximal(const replica& on, std::span<distinct_rollout* const> batch,
                     const grpo_step_options& o) const;
  // Adds the gradients of a micro batch. `is_first`: there was no update in this step yet.
  void accumulate(const replica& on, std::span<distinct_rollout* const> batch,
                  const grpo_step_options& o, bool is_first,
                  std::map<std::string, double>& sums) const;
};

// Makes the trainer's streams LibTorch's current ones as long as it lives, on GPUs: samplers of the
// same GPU have separate streams, and neither waits for the other.
class trainer::own_streams {
 public:
  explicit own_streams(const state& of) : first_(of.first().stream), others_(streams_of(of)) {}
  // Waits for the work of the first replica.
  void finish() const {
    if (const std::optional<c10::Stream> stream = first_.current_stream()) stream->synchronize();
  }

 private:
  static std::vector<c10::Stream> streams_of(const state& of) {
    std::vector<c10::Stream> all;
    for (const replica& one : of.replicas) {
      if (one.stream) all.push_back(*one.stream);
    }
    return all;
  }

  c10::OptionalStreamGuard first_;
  c10::MultiStreamGuard others_;
};

trainer::trainer(const std::filesystem::path& policy, bool random_weights, const options& o) {
  state_ = std::make_unique<state>(policy, o);
  if (o.max_logits == 0)
    state_->chosen.max_logits = max_logits_on(o.device, state_->network.config().dtype);
  const decoder_config& config = state_->network.config();
  if (o.trains && config.dtype == "float16")
    throw policy_error((policy / "config.json").string() +
                       ": a policy in float16 cannot be trained, because small gradients become 0 "
                       "in that type; set policy.dtype to bfloat16 or float32");
  const decoder_weights initial = random_weights ? decoder_weights::random(config, o.seed)
                                                 : decoder_weights::load_finite(policy, config);
  const own_streams guard(*state_);
  state_->put(&replica::weights, initial, config.dtype);
  if (o.adapters.rank > 0)
    state_->put(&replica::adapters, make_adapters(state_->first().weights, o.adapters, o.seed),
                "float32");
  state_->make_optimizer();
}

trainer::~trainer() = default;

const text_codec& trainer::codec() const { return state_->codec; }
std::int64_t trainer::context() const { return state_->network.config().context; }

double trainer::sft_update(std::span<const sft_example> batch, double rate, double prompt_weight) {
  const own_streams guard(*state_);
  std::vector<weighted_sequence> examples;
  double whole = 0;
  for (const sft_example& example : batch) {
    examples.push_back(weigh(example, state_->context(), prompt_weight));
    for (const float weight : examples.back().weights) whole += weight;
  }
  // Losses by replica, read at the end, so that a GPU does not wait in between.
  std::vector<std::vector<at::Tensor>> losses(state_->replicas.size());
  for_replicas(state_->replicas, std::span(examples), state_->micro_batch(),
               [&](std::size_t i, const auto& part) {
                 losses[i].push_back(state_->add_likelihood(state_->replicas[i], part, whole));
               });
  state_->count_tokens(std::span<const weighted_sequence>(examples));
  state_->update(rate);
  double loss = 0;
  for (const auto& of_replica : losses) {
    for (const at::Tensor& one : of_replica) loss += one.item<double>();
  }
  return loss;
}

at::Tensor trainer::state::add_likelihood(const replica& on,
                                          std::span<weighted_sequence* const> examples,
                                          double whole) const {
  std::vector<const token_sequence*> sequences;
  std::vector<float> token_weights;
  for (const weighted_sequence* s : examples) {
    sequences.push_back(&s->all);
    token_weights.insert(token_weights.end(), s->weights.begin(), s->weights.end());
  }
  const packed p = pack(sequences, on.device);
  return add_gradients(network, on.weights, p.view(), {}, chosen.max_logits, chosen.recompute,
                       entropies::ignored,
                       [&](const at::Tensor& ln_p, const at::Tensor& /*entropy*/) {
                         return sft_loss(ln_p, floats(token_weights, on.device), whole);
                       });
}

void trainer::state::note_proximal(const replica& on, std::span<distinct_rollout* const> batch,
                                   const grpo_step_options& o) const {
  const c10::NoGradGuard no_gradients;
  std::vector<const token_sequence*> sequences;
  for (const distinct_rollout* r : batch) sequences.push_back(&r->all);
  const packed p = pack(sequences, on.device);
  const at::Tensor all =
      target_log_probabilities(network, on.weights, p.view(), o.sampling, chosen.max_logits)
          .to(at::kCPU)
          .contiguous();
  const float* next = all.data_ptr<float>();
  for (distinct_rollout* r : batch) {
    r->proximal.assign(next, next + r->then.size());
    next += r->then.size();
  }
}

void trainer::state::accumulate(const replica& on, std::span<distinct_rollout* const> batch,
                                const grpo_step_options& o, bool is_first,
                                std::map<std::string, double>& sums) const {
  const columns of(batch, on.device);
  const packed p = pack(of.sequences, on.device);
  const at::Tensor& old = of.then;
  const bool is_decoupled = o.base == ratio_base::trainer;
  at::Tensor anchor;
  if (o.objective.kl_coefficient > 0 && !on.reference.all().empty())
    anchor =
        target_log_probabilities(network, on.reference, p.view(), o.sampling, chosen.max_logits);
  at::Tensor now;
  at::Tensor entropy;
  at::Tensor proximal;
  const at::Tensor loss = add_gradients(
      network, on.weights, p.view(), o.sampling, chosen.max_logits, chosen.recompute,
      entropies::read, [&](const at::Tensor& ln_p, const at::Tensor& of_tokens) {
        now = ln_p.detach();
        entropy = of_tokens.detach();
        proximal = of.proximal.defined() ? of.proximal : now;
        if (!anchor.defined()) anchor = now;
        const at::Tensor importance = is_decoupled
                                          ? importance_weights(proximal, old, o.importance_limit)
                                          : at::ones_like(old);
        return grpo_loss(
            {ln_p, is_decoupled ? proximal : old, importance, anchor, of_tokens, of.sequence},
            of.advantages, of.weights, o.objective);
      });
  const c10::NoGradGuard no_gradients;
  const at::Tensor ratio = (now - (is_decoupled ? proximal : old)).exp();
  const auto count = [](const at::Tensor& which) { return which.sum().item<double>(); };
  sums["loss"] += loss.item<double>();
  sums["tokens"] += static_cast<double>(old.numel());
  sums["entropy"] += count(entropy);
  sums["clipped"] += count((ratio > highest_ratio(o.objective)) | (ratio < 1 - o.objective.clip));
  const at::Tensor d = anchor - now;
  sums["kl"] += count(d.exp() - d - 1);
  if (!is_first) return;
  const at::Tensor difference = (proximal - old).abs();
  const at::Tensor& current = of.is_current;
  sums["current"] += count(current);
  sums["lagged"] += count(1 - current);
  sums["sampler_difference"] += count(difference * current);
  sums["lagged_difference"] += count(difference * (1 - current));
}

std::map<std::string, double> trainer::grpo_update(std::span<const rollout_group_example> groups,
                                                   double rate, const grpo_step_options& o) {
  const own_streams guard(*state_);
  std::map<std::string, double> numbers;
  std::size_t used = 0;
  std::vector<distinct_rollout> rollouts =
      distinct_rollouts(groups, o.advantages, state_->context(), used);
  numbers["groups_used"] = static_cast<double>(used);
  numbers["distinct_completions"] = static_cast<double>(rollouts.size());
  if (rollouts.empty()) return numbers;
  std::shuffle(rollouts.begin(), rollouts.end(), state_->random);
  const auto parts =
      std::clamp<std::size_t>(static_cast<std::size_t>(o.minibatches), 1, rollouts.size());
  const std::size_t most = state_->micro_batch();
  const std::span<const replica> replicas = state_->replicas;
  // With one update, its own forward pass has the log-probabilities before it.
  if (o.base == ratio_base::trainer && parts > 1)
    for_replicas(replicas, std::span(rollouts), most, [&](std::size_t i, const auto& batch) {
      state_->note_proximal(replicas[i], batch, o);
    });
  std::vector<std::map<std::string, double>> sums_of(replicas.size());
  double norm = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = rollouts.size() * part / parts;
    const std::size_t end = rollouts.size() * (part + 1) / parts;
    const std::span<distinct_rollout> minibatch(&rollouts[begin], end - begin);
    // Sequences of equal length are adjacent, so that they share one attention call.
    std::sort(minibatch.begin(), minibatch.end(), [](const auto& a, const auto& b) {
      return a.all.tokens.size() < b.all.tokens.size();
    });
    weigh(minibatch, o.mean, o.longest_answer);
    for_replicas(replicas, minibatch, most, [&](std::size_t i, const auto& batch) {
      state_->accumulate(replicas[i], batch, o, part == 0, sums_of[i]);
    });
    state_->count_tokens(std::span<const distinct_rollout>(minibatch));
    norm = state_->update(rate).value_or(norm);
  }
  std::map<std::string, double> sums;
  for (const auto& of_replica : sums_of) {
    for (const auto& [key, value] : of_replica) sums[key] += value;
  }
  numbers["loss"] = sums["loss"] / static_cast<double>(parts);
  numbers["entropy"] = sums["entropy"] / sums["tokens"];
  numbers["clipped_share"] = sums["clipped"] / sums["tokens"];
  if (o.objective.kl_coefficient > 0) numbers["kl"] = sums["kl"] / sums["tokens"];
  if (sums["current"] > 0)
    numbers["sampler_difference"] = sums["sampler_difference"] / sums["current"];
  if (sums["lagged"] > 0) numbers["lagged_difference"] = sums["lagged_difference"] / sums["lagged"];
  numbers["gradient_norm"] = norm;
  return numbers;
}

std::uint64_t trainer::skipped_updates() const { return state_->skipped; }
std::uint64_t trainer::tokens_trained_on() const { return state_->tokens_trained_on; }
std::int64_t trainer::updates() const { return state_->adam->steps(); }

void trainer::keep_reference() {
  const own_streams guard(*state_);
  const c10::NoGradGuard no_gradients;
  for (replica& one : state_->replicas) one.reference = state_->whole(one);
}

void trainer::load_reference(const std::filesystem::path& checkpoint) {
  const own_streams guard(*state_);
  const decoder_config& config = state_->network.config();
  state_->put(&replica::reference, decoder_weights::load(checkpoint, config), config.dtype);
}

void trainer::restart_optimizer() {
  const own_streams guard(*state_);
  state_->adam->restart();
}

decoder_weights trainer::copy_weights() const {
  const c10::NoGradGuard no_gradients;
  const own_streams guard(*state_);
  decoder_weights copy = state_->whole(state_->first());
  guard.finish();
  return copy;
}

taken_checkpoint trainer::take_checkpoint(training_progress progress) const {
  const c10::NoGradGuard no_gradients;
  const own_streams guard(*state_);
  std::ostringstream random;
  random << state_->random;
  progress.texts[random_key] = random.str();
  if (state_->is_adapted())
    return
        [policy = state_->policy, adapters = state_->first().adapters.copied_to("cpu", "float32"),
         o = state_->chosen.adapters, moments = state_->adam->moments(),
         progress = std::move(progress)](const std::filesystem::path& folder) {
          save_adapter_checkpoint(folder, policy, adapters, o, moments, progress);
        };
  return [policy = state_->policy,
          weights = state_->first().weights.copied_to("cpu", state_->network.config().dtype),
          moments = state_->adam->moments(),
          progress = std::move(progress)](const std::filesystem::path& folder) {
    save_checkpoint(folder, policy, weights, &moments, progress);
  };
}

training_progress trainer::load(const std::filesystem::path& checkpoint) {
  const own_streams guard(*state_);
  const decoder_config& config = state_->network.config();
  if (state_->is_adapted()) {
    saved_adapters saved = load_adapters(checkpoint);
    const adapter_options& o = state_->chosen.adapters;
    if (saved.options.rank != o.rank || saved.options.alpha != o.alpha ||
        saved.adapters.all().size() != state_->first().adapters.all().size())
      throw policy_error(checkpoint.string() +
                         ": has adapters of another policy.adapter_rank, adapter_alpha or "
                         "adapter_modules");
    state_->put(&replica::adapters, saved.adapters, "float32");
  } else {
    state_->put(&replica::weights, decoder_weights::load(checkpoint, config), config.dtype);
  }
  state_->make_optimizer();
  state_->adam->load(checkpoint / "optimizer.safetensors");
  training_progress progress = load_training_progress(checkpoint);
  // A checkpoint of an earlier version of Hone lacks the state.
  if (const auto random = progress.texts.find(random_key); random != progress.texts.end())
    std::istringstream(random->second) >> state_->random;
  return progress;
}

}  // namespace hone
