#include "policy/sampling/joined_weights.hpp"

#include <ATen/ATen.h>

#include <initializer_list>
#include <string>

namespace hone {
namespace {

// Copies the concatenation of `parts` to `to`, which is made on the first call. Parts that are
// undefined leave it undefined.
void copy_joined(const std::vector<at::Tensor>& parts, at::Tensor& to) {
  if (!parts.front().defined()) return;
  if (!to.defined()) {
    std::vector<std::int64_t> shape = parts.front().sizes().vec();
    shape[0] = 0;
    for (const at::Tensor& part : parts) shape[0] += part.size(0);
    to = at::empty(shape, parts.front().options());
  }
  std::int64_t begin = 0;
  for (const at::Tensor& part : parts) {
    to.narrow(0, begin, part.size(0)).copy_(part);
    begin += part.size(0);
  }
}

}  // namespace

void joined_weights::assign(const decoder_weights& weights, const decoder_config& config) {
  const auto join = [&](at::Tensor& to, std::initializer_list<std::string> names) {
    std::vector<at::Tensor> parts;
    for (const std::string& name : names) {
      const auto found = weights.all().find(name);
      parts.push_back(found != weights.all().end() ? found->second.detach() : at::Tensor());
    }
    copy_joined(parts, to);
  };
  layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = "model.layers." + std::to_string(i) + ".";
    const std::string a = name + "self_attn.";
    const std::string m = name + "mlp.";
    layer& l = layers[i];
    join(l.input_norm, {name + "input_layernorm.weight"});
    join(l.qkv, {a + "q_proj.weight", a + "k_proj.weight", a + "v_proj.weight"});
    join(l.qkv_bias, {a + "q_proj.bias", a + "k_proj.bias", a + "v_proj.bias"});
    join(l.output, {a + "o_proj.weight"});
    join(l.output_bias, {a + "o_proj.bias"});
    join(l.q_norm, {a + "q_norm.weight"});
    join(l.k_norm, {a + "k_norm.weight"});
    join(l.after_norm, {name + "post_attention_layernorm.weight"});
    join(l.gate_up, {m + "gate_proj.weight", m + "up_proj.weight"});
    join(l.gate_up_bias, {m + "gate_proj.bias", m + "up_proj.bias"});
    join(l.down, {m + "down_proj.weight"});
    join(l.down_bias, {m + "down_proj.bias"});
  }
  join(embedding, {"model.embed_tokens.weight"});
  if (config.tied_head) {
    head = embedding;
  } else {
    join(head, {"lm_head.weight"});
  }
  join(final_norm, {"model.norm.weight"});
}

}  // namespace hone
