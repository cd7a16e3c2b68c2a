#include "policy/sampling/padded_network.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "policy/network/transformer.hpp"
#include "policy/sampling/joined_weights.hpp"
#include "policy/sampling/key_value_cache.hpp"

namespace hone {
namespace {

std::optional<at::Tensor> given(const at::Tensor& t) {
  return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
}

at::Tensor rotate_half(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({-halves[1], halves[0]}, -1);
}

class padded_network final : public sequence_network {
 public:
  padded_network(const decoder_config& config, const sequence_limits& limits,
                 const sampling_distribution& sampling)
      : network_(config), limits_(limits), sampling_(sampling), cache_(config, limits.slots) {}

  void set_weights(const decoder_weights& weights) override {
    weights_.assign(weights, config());
    const at::Device device = weights_.embedding.device();
    if (!device.is_cpu())
      c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
  }

  bool open(std::uint64_t ticket, const std::vector<token_id>& prompt) override {
    prompts_[ticket].tokens.assign(prompt.begin(), prompt.end());
    unread_.push_back(ticket);
    return true;
  }
  std::vector<std::uint64_t> read_prompts() override {
    for (const std::uint64_t ticket : unread_) read(prompts_.at(ticket));
    return std::exchange(unread_, {});
  }
  bool has_unread() const override { return !unread_.empty(); }
  bool attach(std::uint64_t ticket) override {
    const open_prompt& p = prompts_.at(ticket);
    const auto length = static_cast<std::int64_t>(p.tokens.size());
    cache_.reserve(std::min(config().context, length + limits_.max_new_tokens), weights_.embedding);
    cache_.write_prompt(static_cast<std::int64_t>(lengths_.size()), p.keys, p.values);
    first_logits_.push_back(p.last_logits);
    lengths_.push_back(length);
    return true;
  }
  void close(std::uint64_t ticket) override { prompts_.erase(ticket); }
  void release(std::size_t slot) override {
    const std::size_t last = lengths_.size() - 1;
    if (slot != last) {
      cache_.move(static_cast<std::int64_t>(last), static_cast<std::int64_t>(slot), lengths_[last]);
      lengths_[slot] = lengths_[last];
      first_logits_[slot] = first_logits_[last];
    }
    lengths_.pop_back();
    first_logits_.pop_back();
  }

  std::vector<drawn_token> decode(std::span<const input> inputs,
                                  std::span<const double> uniform) override;
  std::vector<drawn_token> draw_first(std::size_t first, std::span<const double> uniform) override {
    std::vector<at::Tensor> rows;
    for (std::size_t i = first; i < first_logits_.size(); ++i) {
      rows.push_back(first_logits_[i]);
      first_logits_[i] = at::Tensor();
    }
    return draw_tokens(at::cat(rows, 0), uniform, sampling_);
  }

 private:
  struct open_prompt {
    std::vector<std::int64_t> tokens;
    std::vector<at::Tensor> keys, values;  // by layer: [kv_heads, T, head_width]
    at::Tensor last_logits;                // [1, V]
  };

  const decoder_config& config() const { return network_.config(); }
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    return at::rms_norm(x, {x.size(-1)}, weight, config().norm_epsilon);
  }

  // Computes q [n, heads, d] and k and v [n, kv_heads, d] from x [n, width]; cosine and sine
  // [n, 1, d] rotate q and k.
  void project(const at::Tensor& x, const joined_weights::layer& w, const at::Tensor& cosine,
               const at::Tensor& sine, at::Tensor& q, at::Tensor& k, at::Tensor& v) const {
    const decoder_config& c = config();
    const at::Tensor all = at::linear(norm(x, w.input_norm), w.qkv, given(w.qkv_bias))
                               .view({x.size(0), c.heads + 2 * c.kv_heads, c.head_width});
    q = all.narrow(1, 0, c.heads);
    k = all.narrow(1, c.heads, c.kv_heads);
    v = all.narrow(1, c.heads + c.kv_heads, c.kv_heads);
    if (c.head_norm) {
      q = norm(q, w.q_norm);
      k = norm(k, w.k_norm);
    }
    q = q * cosine + rotate_half(q) * sine;
    k = k * cosine + rotate_half(k) * sine;
  }
  at::Tensor after_attention(const at::Tensor& x, const at::Tensor& mixed,
                             const joined_weights::layer& w) const {
    const at::Tensor y = x + at::linear(mixed, w.output, given(w.output_bias));
    const auto halves =
        at::linear(norm(y, w.after_norm), w.gate_up, given(w.gate_up_bias)).chunk(2, -1);
    return y + at::linear(at::silu(halves[0]) * halves[1], w.down, given(w.down_bias));
  }
  at::Tensor head_logits(const at::Tensor& x) const {
    return at::linear(norm(x, weights_.final_norm), weights_.head).to(at::kFloat);
  }
  void read(open_prompt& p) const;

  decoder network_;
  sequence_limits limits_;
  sampling_distribution sampling_;
  joined_weights weights_;
  key_value_cache cache_;
  std::map<std::uint64_t, open_prompt> prompts_;
  std::vector<std::uint64_t> unread_;
  // By slot. Slot i uses row i of the cache.
  std::vector<std::int64_t> lengths_;  // tokens in the cache
  std::vector<at::Tensor> first_logits_;
};

void padded_network::read(open_prompt& p) const {
  const decoder_config& c = config();
  const auto length = static_cast<std::int64_t>(p.tokens.size());
  const auto device = weights_.embedding.device();
  at::Tensor x = at::embedding(weights_.embedding, at::tensor(p.tokens, at::kLong).to(device));
  const auto [cosines, sines] =
      network_.rotary(at::arange(length, at::TensorOptions(at::kLong).device(device)));
  const at::Tensor cosine = cosines.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor sine = sines.to(x.scalar_type()).unsqueeze(1);
  for (const joined_weights::layer& w : weights_.layers) {
    at::Tensor q;
    at::Tensor k;
    at::Tensor v;
    project(x, w, cosine, sine, q, k, v);
    p.keys.push_back(k.transpose(0, 1).contiguous());
    p.values.push_back(v.transpose(0, 1).contiguous());
    const std::int64_t shared = c.heads / c.kv_heads;
    const at::Tensor keys = p.keys.back().repeat_interleave(shared, 0).unsqueeze(0);
    const at::Tensor values = p.values.back().repeat_interleave(shared, 0).unsqueeze(0);
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0), keys, values, std::nullopt, 0.0, /*is_causal=*/true);
    x = after_attention(
        x, mixed.squeeze(0).transpose(0, 1).reshape({length, c.heads * c.head_width}), w);
  }
  p.last_logits = head_logits(x.narrow(0, length - 1, 1));
}

std::vector<drawn_token> padded_network::decode(std::span<const input> inputs,
                                                std::span<const double> uniform) {
  const decoder_config& c = config();
  const auto n = static_cast<std::int64_t>(inputs.size());
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ids.push_back(inputs[i].token);
    places.push_back(inputs[i].position);
    lengths_[i] = inputs[i].position + 1;
  }
  const auto device = weights_.embedding.device();
  const at::Tensor positions = at::tensor(places, at::kLong).to(device);
  const std::int64_t length = *std::max_element(places.begin(), places.end()) + 1;
  at::Tensor x = at::embedding(weights_.embedding, at::tensor(ids, at::kLong).to(device));
  const auto [cosines, sines] = network_.rotary(positions);
  const at::Tensor cosine = cosines.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor sine = sines.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor ahead =
      at::arange(length, positions.options()).unsqueeze(0) > positions.unsqueeze(1);  // [n, L]
  const at::Tensor mask =
      at::zeros({n, 1, 1, length}, x.options())
          .masked_fill(ahead.view({n, 1, 1, length}), -std::numeric_limits<float>::infinity());
  const at::Tensor written_at = cache_.places(positions);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    at::Tensor q;
    at::Tensor k;
    at::Tensor v;
    project(x, weights_.layers[i], cosine, sine, q, k, v);
    cache_.write_tokens(i, written_at, k, v);
    // There is one query position per slot, so the dimension of query positions holds the query
    // heads that share a key head. Keys and values then need no repetition.
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q.reshape({n, c.kv_heads, c.heads / c.kv_heads, c.head_width}), cache_.keys(i, n, length),
        cache_.values(i, n, length), mask);
    x = after_attention(x, mixed.reshape({n, c.heads * c.head_width}), weights_.layers[i]);
  }
  return draw_tokens(head_logits(x), uniform, sampling_);
}

}  // namespace

std::unique_ptr<sequence_network> make_padded_network(const decoder_config& config,
                                                      const sequence_limits& limits,
                                                      const sampling_distribution& sampling) {
  return std::make_unique<padded_network>(config, limits, sampling);
}

}  // namespace hone
