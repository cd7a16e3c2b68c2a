#include "policy/network/transformer.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "policy/network/adapters.hpp"
#include "policy/network/fused_operators.hpp"

namespace hone {
namespace {

constexpr const char* embedding_name = "model.embed_tokens.weight";

at::Tensor rotate_half(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({-halves[1], halves[0]}, -1);
}

}  // namespace

struct decoder::state {
  decoder_config config;
  double adapter_scale = 0;
  at::Tensor frequencies;  // [head_width / 2], fp32 on the CPU
  double wavelength_scale = 1;
};

decoder::decoder(decoder_config config, double adapter_scale) : state_(std::make_unique<state>()) {
  state_->config = std::move(config);
  state_->adapter_scale = adapter_scale;
  const decoder_config& c = state_->config;
  // Source: Su et al. 2021 (arXiv 2104.09864), with the scaling of Chen et al. 2023 (linear) or of
  // Llama 3.1 (llama3).
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < c.head_width / 2; ++i) {
    double f =
        std::pow(c.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_width));
    if (c.rope_scaling == "linear") f /= c.rope_factor;
    if (c.rope_scaling == "llama3") {
      const double wavelength = 2 * std::numbers::pi / f;
      const double low = c.rope_original_context / c.rope_low_frequency;
      const double high = c.rope_original_context / c.rope_high_frequency;
      if (wavelength > low) {
        f /= c.rope_factor;
      } else if (wavelength > high) {
        const double smooth = (c.rope_original_context / wavelength - c.rope_low_frequency) /
                              (c.rope_high_frequency - c.rope_low_frequency);
        f = (1 - smooth) * f / c.rope_factor + smooth * f;
      }
    }
    frequencies.push_back(f);
  }
  state_->frequencies = at::tensor(frequencies, at::kDouble).to(at::kFloat);
}

decoder::~decoder() = default;
decoder::decoder(decoder&&) noexcept = default;
const decoder_config& decoder::config() const { return state_->config; }

std::pair<at::Tensor, at::Tensor> decoder::rotary(const at::Tensor& positions) const {
  const at::Tensor angles =
      at::outer(positions.to(at::kFloat), state_->frequencies.to(positions.device()));
  const at::Tensor both = at::cat({angles, angles}, -1);
  return {both.cos(), both.sin()};
}

at::Tensor decoder::turns(std::int64_t count, const at::Tensor& like) const {
  const auto [cosines, sines] =
      rotary(at::arange(count, at::TensorOptions(at::kLong).device(like.device())));
  const std::int64_t pairs = state_->config.head_width / 2;
  return at::stack({cosines.narrow(1, 0, pairs), sines.narrow(1, 0, pairs)}, -1).contiguous();
}

struct decoder::layout {
  std::vector<std::int64_t> lengths;
  bool is_fused = false;  // own kernels and FlashAttention
  at::Tensor cosine;      // [N, 1, head_width], as sine; undefined if fused
  at::Tensor sine;
  at::Tensor turns;      // [P, head_width / 2, 2] (fp32); undefined if not fused, as what follows
  at::Tensor positions;  // [N] (int32)
  at::Tensor ends;       // [sequences + 1] (int32): where sequences begin and end
  std::int64_t longest = 0;

  at::Tensor rotate(const at::Tensor& t) const {
    return is_fused ? fused_rotate(t, turns, positions) : t * cosine + rotate_half(t) * sine;
  }
};

decoder::layout decoder::lay_out(std::span<const std::int64_t> lengths,
                                 const at::Tensor& like) const {
  layout of;
  of.lengths.assign(lengths.begin(), lengths.end());
  of.is_fused =
      state_->config.head_width % 16 == 0 && state_->config.feed_forward % 8 == 0 && can_fuse(like);
  std::vector<std::int64_t> positions;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) positions.push_back(i);
  }
  if (!of.is_fused) {
    const auto [cosines, sines] = rotary(at::tensor(positions, at::kLong).to(like.device()));
    of.cosine = cosines.to(like.scalar_type()).unsqueeze(1);
    of.sine = sines.to(like.scalar_type()).unsqueeze(1);
    return of;
  }
  std::vector<int> ends = {0};
  for (const std::int64_t length : lengths) ends.push_back(ends.back() + static_cast<int>(length));
  of.longest = *std::max_element(lengths.begin(), lengths.end());
  of.positions = at::tensor(positions, at::kInt).to(like.device());
  of.ends = at::tensor(ends, at::kInt).to(like.device());
  of.turns = turns(of.longest, like);
  return of;
}

at::Tensor decoder::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const layout& of) const {
  const decoder_config& c = state_->config;
  if (of.is_fused && q.scalar_type() != at::kFloat)
    return std::get<0>(at::_flash_attention_forward(q, k, v, of.ends, of.ends, of.longest,
                                                    of.longest, 0.0, /*is_causal=*/true,
                                                    /*return_debug_mask=*/false))
        .reshape({q.size(0), c.heads * c.head_width});
  const std::int64_t shared = c.heads / c.kv_heads;
  const at::Tensor keys = shared > 1 ? k.repeat_interleave(shared, 1) : k;
  const at::Tensor values = shared > 1 ? v.repeat_interleave(shared, 1) : v;
  // Adjacent sequences of equal length share one attention call.
  std::vector<at::Tensor> mixed;
  std::int64_t begin = 0;
  const std::vector<std::int64_t>& lengths = of.lengths;
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t end = i;
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    const std::int64_t batch = static_cast<std::int64_t>(end - i);
    const std::int64_t tokens = batch * lengths[i];
    const auto part = [&](const at::Tensor& t) {
      return t.narrow(0, begin, tokens)
          .view({batch, lengths[i], c.heads, c.head_width})
          .transpose(1, 2);
    };
    mixed.push_back(at::scaled_dot_product_attention(part(q), part(keys), part(values),
                                                     std::nullopt, 0.0, /*is_causal=*/true)
                        .transpose(1, 2)
                        .reshape({tokens, c.heads * c.head_width}));
    begin += tokens;
    i = end;
  }
  return mixed.size() == 1 ? mixed.front() : at::cat(mixed);
}

// What passes between layers. The change of the last one is added where the next one begins, in one
// step with its norm. Undefined: none.
struct decoder::residual {
  at::Tensor x;
  at::Tensor change;
};

std::pair<at::Tensor, at::Tensor> decoder::add_and_norm(const decoder_weights& weights,
                                                        const residual& before,
                                                        const std::string& name,
                                                        const layout& of) const {
  if (!before.change.defined()) return {before.x, norm(weights, before.x, name)};
  const std::int64_t width = state_->config.width;
  if (of.is_fused && width <= widest_norm && width % 8 == 0)
    return fused_add_and_norm(before.x, before.change, weights.all().at(name),
                              state_->config.norm_epsilon);
  const at::Tensor y = before.x + before.change;
  return {y, norm(weights, y, name)};
}

at::Tensor decoder::linear(const decoder_weights& weights, const at::Tensor& x,
                           const std::string& name) const {
  const auto& w = weights.all();
  const auto bias = w.find(name + ".bias");
  return at::linear(x, adapted_matrix(weights, name + ".weight", state_->adapter_scale),
                    bias != w.end() ? std::optional<at::Tensor>(bias->second) : std::nullopt);
}

// Several projections of the same rows as one matrix product. The weights are copied together
// first, and the copy stays until the gradients are computed.
at::Tensor decoder::joined_linear(const decoder_weights& weights, const at::Tensor& x,
                                  const std::vector<std::string>& names) const {
  const auto& w = weights.all();
  std::vector<at::Tensor> matrices;
  std::vector<at::Tensor> biases;
  for (const std::string& name : names) {
    matrices.push_back(adapted_matrix(weights, name + ".weight", state_->adapter_scale));
    if (const auto bias = w.find(name + ".bias"); bias != w.end()) biases.push_back(bias->second);
  }
  return at::linear(x, at::cat(matrices),
                    biases.empty() ? std::nullopt : std::optional<at::Tensor>(at::cat(biases)));
}

at::Tensor decoder::norm(const decoder_weights& weights, const at::Tensor& x,
                         const std::string& name) const {
  return at::rms_norm(x, {x.size(-1)}, weights.all().at(name), state_->config.norm_epsilon);
}

decoder::residual decoder::layer(const decoder_weights& weights, std::int64_t index,
                                 const residual& before, const layout& of) const {
  const decoder_config& c = state_->config;
  const std::int64_t count = before.x.size(0);
  const std::string name = "model.layers." + std::to_string(index) + ".";
  const std::string attention = name + "self_attn.";
  const auto [x, h] = add_and_norm(weights, before, name + "input_layernorm.weight", of);
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
  const auto project = [&](const char* which, std::int64_t heads) {
    return linear(weights, h, attention + which).view({count, heads, c.head_width});
  };
  if (of.is_fused && !c.head_norm) {
    std::tie(q, k, v) = fused_split(
        joined_linear(weights, h,
                      {attention + "q_proj", attention + "k_proj", attention + "v_proj"}),
        of.turns, of.positions, c.heads, c.kv_heads);
  } else {
    q = project("q_proj", c.heads);
    k = project("k_proj", c.kv_heads);
    v = project("v_proj", c.kv_heads);
    if (c.head_norm) {
      q = norm(weights, q, attention + "q_norm.weight");
      k = norm(weights, k, attention + "k_norm.weight");
    }
    q = of.rotate(q);
    k = of.rotate(k);
  }
  const auto [y, m] =
      add_and_norm(weights, {x, linear(weights, attend(q, k, v, of), attention + "o_proj")},
                   name + "post_attention_layernorm.weight", of);
  const std::string mlp = name + "mlp.";
  const at::Tensor gated =
      of.is_fused
          ? fused_gate(joined_linear(weights, m, {mlp + "gate_proj", mlp + "up_proj"}))
          : at::silu(linear(weights, m, mlp + "gate_proj")) * linear(weights, m, mlp + "up_proj");
  return {y, linear(weights, gated, mlp + "down_proj")};
}

at::Tensor decoder::hidden(const decoder_weights& weights, const at::Tensor& tokens,
                           std::span<const std::int64_t> lengths) const {
  residual at_layer{at::embedding(weights.all().at(embedding_name), tokens), {}};
  const layout of = lay_out(lengths, at_layer.x);
  for (std::int64_t i = 0; i < state_->config.layers; ++i)
    at_layer = layer(weights, i, at_layer, of);
  return add_and_norm(weights, at_layer, "model.norm.weight", of).second;
}

decoder::checkpointed_pass decoder::checkpointed_hidden_at(const decoder_weights& weights,
                                                           const at::Tensor& tokens,
                                                           std::span<const std::int64_t> lengths,
                                                           const at::Tensor& positions) const {
  const auto whole = [](const residual& r) { return r.x + r.change; };
  std::vector<at::Tensor> inputs;  // of the layers, and of the last norm
  const at::Tensor& embeddings = weights.all().at(embedding_name);
  layout of;
  {
    const c10::NoGradGuard no_gradients;
    inputs.push_back(at::embedding(embeddings, tokens));
    of = lay_out(lengths, inputs.front());
    for (std::int64_t i = 0; i < state_->config.layers; ++i)
      inputs.push_back(whole(layer(weights, i, {inputs.back(), {}}, of)));
  }
  for (at::Tensor& input : inputs) input.requires_grad_();
  const at::Tensor rows =
      norm(weights, inputs.back(), "model.norm.weight").index_select(0, positions);
  const auto finish = [this, &weights, &tokens, embeddings, of, inputs, whole] {
    for (std::int64_t i = state_->config.layers; i-- > 0;) {
      const auto at = static_cast<std::size_t>(i);
      whole(layer(weights, i, {inputs[at], {}}, of)).backward(inputs[at + 1].grad());
      inputs[at + 1].mutable_grad() = at::Tensor();
    }
    if (embeddings.requires_grad())
      at::embedding(embeddings, tokens).backward(inputs.front().grad());
  };
  return {std::make_unique<at::Tensor>(rows), finish};
}

at::Tensor decoder::logits(const decoder_weights& weights, const at::Tensor& tokens) const {
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(tokens.size(0)), tokens.size(1));
  const at::Tensor all = hidden(weights, tokens.reshape({-1}), lengths)
                             .view({tokens.size(0), tokens.size(1), state_->config.width});
  return head(weights, all);
}

at::Tensor decoder::hidden_at(const decoder_weights& weights, const at::Tensor& tokens,
                              std::span<const std::int64_t> lengths,
                              const at::Tensor& positions) const {
  return hidden(weights, tokens, lengths).index_select(0, positions);
}

at::Tensor decoder::unconverted_head(const decoder_weights& weights,
                                     const at::Tensor& hidden) const {
  const char* const matrix = state_->config.tied_head ? embedding_name : "lm_head.weight";
  return at::linear(hidden, weights.all().at(matrix));
}

at::Tensor decoder::head(const decoder_weights& weights, const at::Tensor& hidden) const {
  return unconverted_head(weights, hidden).to(at::kFloat);
}

}  // namespace hone
