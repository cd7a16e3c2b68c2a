#include "policy/generation.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "policy/key_value_cache.hpp"

namespace hone {
namespace {

struct layer_weights {
  at::Tensor input_norm, qkv, qkv_bias, output, output_bias, q_norm, k_norm, after_norm, gate_up,
      gate_up_bias, down, down_bias;
};

std::optional<at::Tensor> given(const at::Tensor& t) {
  return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
}

at::Tensor rotate_half(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({-halves[1], halves[0]}, -1);
}

}  // namespace

struct generation_engine::state {
  struct request {
    generation_request asked;
    std::uint32_t admitted = 0;
    std::uint32_t finished = 0;
    bool prefilled = false;
    std::vector<at::Tensor> keys, values;  // by layer: [kv_heads, T, head_width]
    at::Tensor last_logits;                // [V]
    std::vector<completion> completions;
  };
  struct slot {
    std::uint64_t ticket = 0;
    std::uint32_t sample = 0;
    std::int64_t position = 0;  // position of the next input token
    token_id token = 0;         // next input token
  };

  state(const decoder_config& c, const generation_options& o)
      : network(c),
        options(o),
        generator(at::make_generator<at::CPUGeneratorImpl>(o.seed)),
        cache(c, o.slots) {}

  const decoder_config& config() const { return network.config(); }
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    return at::rms_norm(x, {x.size(-1)}, weight, config().norm_epsilon);
  }

  // Computes q [n, heads, d] and k and v [n, kv_heads, d] from x [n, width]; cosine and sine
  // [n, 1, d] rotate q and k.
  void project(const at::Tensor& x, const layer_weights& w, const at::Tensor& cosine,
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
                             const layer_weights& w) const {
    const at::Tensor y = x + at::linear(mixed, w.output, given(w.output_bias));
    const auto halves =
        at::linear(norm(y, w.after_norm), w.gate_up, given(w.gate_up_bias)).chunk(2, -1);
    return y + at::linear(at::silu(halves[0]) * halves[1], w.down, given(w.down_bias));
  }
  at::Tensor head_logits(const at::Tensor& x) const {
    return at::linear(norm(x, final_norm), head).to(at::kFloat);
  }

  void prefill(request& r) const;
  void admit();
  at::Tensor decode();
  void take_samples(const at::Tensor& logits, std::int64_t first,
                    std::vector<finished_request>& done);
  bool accept(slot& s, token_id token, float log_probability, std::vector<finished_request>& done);
  void release(std::size_t index);

  decoder network;
  generation_options options;
  at::Generator generator;
  std::vector<layer_weights> layers;
  at::Tensor embedding, head, final_norm;
  std::uint64_t version = 0;
  key_value_cache cache;
  // Active slots. Slot i uses row i of the cache, so the used rows are the first ones.
  std::vector<slot> slots;
  std::map<std::uint64_t, request> requests;
  std::deque<std::uint64_t> queue;  // tickets with samples that have no slot yet
  std::uint64_t written = 0;
};

generation_engine::generation_engine(const decoder_config& config,
                                     const generation_options& options)
    : state_(std::make_unique<state>(config, options)) {}
generation_engine::~generation_engine() = default;

void generation_engine::set_weights(const decoder_weights& weights, std::uint64_t version) {
  const c10::InferenceMode inference;
  const auto& w = weights.all();
  const decoder_config& c = state_->config();
  const auto detached = [&](const std::string& name) {
    const auto found = w.find(name);
    return found != w.end() ? found->second.detach() : at::Tensor();
  };
  const auto joined = [&](std::initializer_list<std::string> names) {
    std::vector<at::Tensor> parts;
    for (const std::string& name : names) parts.push_back(detached(name));
    return parts.front().defined() ? at::cat(parts, 0) : at::Tensor();
  };
  state_->layers.clear();
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const std::string a = layer + "self_attn.";
    layer_weights l;
    l.input_norm = detached(layer + "input_layernorm.weight").clone();
    l.qkv = joined({a + "q_proj.weight", a + "k_proj.weight", a + "v_proj.weight"});
    l.qkv_bias = joined({a + "q_proj.bias", a + "k_proj.bias", a + "v_proj.bias"});
    l.output = detached(a + "o_proj.weight").clone();
    l.output_bias = detached(a + "o_proj.bias");
    l.q_norm = detached(a + "q_norm.weight");
    l.k_norm = detached(a + "k_norm.weight");
    l.after_norm = detached(layer + "post_attention_layernorm.weight").clone();
    l.gate_up = joined({layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"});
    l.gate_up_bias = joined({layer + "mlp.gate_proj.bias", layer + "mlp.up_proj.bias"});
    l.down = detached(layer + "mlp.down_proj.weight").clone();
    l.down_bias = detached(layer + "mlp.down_proj.bias");
    state_->layers.push_back(std::move(l));
  }
  state_->embedding = detached("model.embed_tokens.weight").clone();
  state_->head = c.tied_head ? state_->embedding : detached("lm_head.weight").clone();
  state_->final_norm = detached("model.norm.weight").clone();
  state_->version = version;
}

std::uint64_t generation_engine::version() const { return state_->version; }

void generation_engine::submit(const generation_request& request) {
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t answer =
      request.room == answer_room::whole ? state_->options.max_new_tokens : 1;
  if (length == 0 || length + answer > state_->config().context) {
    throw policy_error("a prompt of " + std::to_string(length) + " tokens leaves no room for " +
                       (answer > 1 ? std::to_string(answer) : "any") + " in a context of " +
                       std::to_string(state_->config().context));
  }
  auto& r = state_->requests[request.ticket];
  r.asked = request;
  r.completions.resize(request.samples);
  state_->queue.push_back(request.ticket);
}

void generation_engine::state::prefill(request& r) const {
  const decoder_config& c = config();
  std::vector<std::int64_t> ids(r.asked.prompt.begin(), r.asked.prompt.end());
  const auto length = static_cast<std::int64_t>(ids.size());
  const auto device = embedding.device();
  at::Tensor x = at::embedding(embedding, at::tensor(ids, at::kLong).to(device));
  const auto [cosines, sines] =
      network.rotary(at::arange(length, at::TensorOptions(at::kLong).device(device)));
  const at::Tensor cosine = cosines.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor sine = sines.to(x.scalar_type()).unsqueeze(1);
  r.keys.clear();
  r.values.clear();
  for (const layer_weights& w : layers) {
    at::Tensor q;
    at::Tensor k;
    at::Tensor v;
    project(x, w, cosine, sine, q, k, v);
    r.keys.push_back(k.transpose(0, 1).contiguous());
    r.values.push_back(v.transpose(0, 1).contiguous());
    const std::int64_t shared = c.heads / c.kv_heads;
    const at::Tensor keys = r.keys.back().repeat_interleave(shared, 0).unsqueeze(0);
    const at::Tensor values = r.values.back().repeat_interleave(shared, 0).unsqueeze(0);
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0), keys, values, std::nullopt, 0.0, /*is_causal=*/true);
    x = after_attention(
        x, mixed.squeeze(0).transpose(0, 1).reshape({length, c.heads * c.head_width}), w);
  }
  r.last_logits = head_logits(x.narrow(0, length - 1, 1));
  r.prefilled = true;
}

// Gives the free slots to the waiting samples, in order. The network processes a prompt once for
// all of its samples.
void generation_engine::state::admit() {
  while (!queue.empty() && static_cast<std::int64_t>(slots.size()) < options.slots) {
    request& r = requests.at(queue.front());
    if (!r.prefilled) prefill(r);
    const auto length = static_cast<std::int64_t>(r.asked.prompt.size());
    cache.reserve(std::min(config().context, length + options.max_new_tokens), embedding);
    while (r.admitted < r.asked.samples &&
           static_cast<std::int64_t>(slots.size()) < options.slots) {
      const auto at = static_cast<std::int64_t>(slots.size());
      cache.write_prompt(at, r.keys, r.values);
      slots.push_back({queue.front(), r.admitted++, length, 0});
    }
    if (r.admitted < r.asked.samples) return;
    r.keys.clear();
    r.values.clear();
    queue.pop_front();
  }
}

// Runs the network on the next input token of every slot. Returns the logits [n, V] of the tokens
// that follow.
at::Tensor generation_engine::state::decode() {
  const decoder_config& c = config();
  const auto n = static_cast<std::int64_t>(slots.size());
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> places;
  for (const slot& s : slots) {
    ids.push_back(s.token);
    places.push_back(s.position);
  }
  const auto device = embedding.device();
  const at::Tensor positions = at::tensor(places, at::kLong).to(device);
  const std::int64_t length = *std::max_element(places.begin(), places.end()) + 1;
  at::Tensor x = at::embedding(embedding, at::tensor(ids, at::kLong).to(device));
  const auto [cosines, sines] = network.rotary(positions);
  const at::Tensor cosine = cosines.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor sine = sines.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor ahead =
      at::arange(length, positions.options()).unsqueeze(0) > positions.unsqueeze(1);  // [n, L]
  const at::Tensor mask =
      at::zeros({n, 1, 1, length}, x.options())
          .masked_fill(ahead.view({n, 1, 1, length}), -std::numeric_limits<float>::infinity());
  const at::Tensor written_at = cache.places(positions);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    at::Tensor q;
    at::Tensor k;
    at::Tensor v;
    project(x, layers[i], cosine, sine, q, k, v);
    cache.write_tokens(i, written_at, k, v);
    // There is one query position per slot, so the dimension of query positions holds the query
    // heads that share a key head. Keys and values then need no repetition.
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q.reshape({n, c.kv_heads, c.heads / c.kv_heads, c.head_width}), cache.keys(i, n, length),
        cache.values(i, n, length), mask);
    x = after_attention(x, mixed.reshape({n, c.heads * c.head_width}), layers[i]);
  }
  return head_logits(x);
}

// Draws one token for each slot from `first` on, from logits [n, V]. Appends the requests that
// finish to `done`.
void generation_engine::state::take_samples(const at::Tensor& logits, std::int64_t first,
                                            std::vector<finished_request>& done) {
  const std::int64_t n = logits.size(0);
  std::vector<std::int64_t> greedy;  // rows of slots that take the most likely token
  for (std::int64_t i = 0; i < n; ++i) {
    const slot& s = slots[static_cast<std::size_t>(first + i)];
    if (options.sampling.temperature <= 0 || requests.at(s.ticket).asked.is_greedy)
      greedy.push_back(i);
  }
  at::Tensor chosen;
  at::Tensor picked;
  if (static_cast<std::int64_t>(greedy.size()) < n) {
    const at::Tensor log_probabilities = sampling_log_probabilities(logits, options.sampling);
    // Inverse transform sampling. The uniform numbers come from the CPU generator on every device,
    // so that a seed gives the same numbers everywhere.
    const at::Tensor cumulative = log_probabilities.exp().cumsum(-1, at::kDouble);
    const at::Tensor uniform =
        at::rand({n, 1}, generator, at::TensorOptions(at::kDouble)).to(logits.device());
    chosen =
        at::searchsorted(cumulative, uniform * cumulative.narrow(-1, cumulative.size(-1) - 1, 1),
                         /*out_int32=*/false, /*right=*/true)
            .squeeze(-1)
            .clamp_max(cumulative.size(-1) - 1);
    picked = log_probabilities.gather(-1, chosen.unsqueeze(-1)).squeeze(-1);
  } else {
    chosen = at::empty({n}, logits.options().dtype(at::kLong));
    picked = at::empty({n}, logits.options());
  }
  if (!greedy.empty()) {
    const at::Tensor rows = at::tensor(greedy, at::kLong).to(logits.device());
    const at::Tensor its = logits.index_select(0, rows);
    const at::Tensor most_likely = its.argmax(-1);
    chosen = chosen.index_copy(0, rows, most_likely);
    picked = picked.index_copy(0, rows, token_log_probabilities(its, most_likely, {}));
  }
  picked = picked.to(at::kCPU).contiguous();
  const at::Tensor tokens = chosen.to(at::kCPU).contiguous();
  if (!at::isfinite(picked).all().item<bool>())
    throw policy_error("the policy's logits are not finite");
  // The order is descending because release() moves the last slot, which must have its token by
  // then, into the place of a slot that ends.
  for (std::int64_t i = n; i-- > 0;) {
    const auto index = static_cast<std::size_t>(first + i);
    if (accept(slots[index], static_cast<token_id>(tokens.data_ptr<std::int64_t>()[i]),
               picked.data_ptr<float>()[i], done))
      release(index);
  }
}

// Appends a token to the completion of a slot. Returns true if this token ends the completion.
bool generation_engine::state::accept(slot& s, token_id token, float log_probability,
                                      std::vector<finished_request>& done) {
  request& r = requests.at(s.ticket);
  completion& c = r.completions[s.sample];
  c.tokens.push_back(token);
  c.log_probabilities.push_back(log_probability);
  if (c.versions.empty() || c.versions.back().first != version) c.versions.emplace_back(version, 0);
  ++c.versions.back().second;
  ++written;
  const bool ended = std::find(options.end_tokens.begin(), options.end_tokens.end(), token) !=
                         options.end_tokens.end() ||
                     (options.is_complete && options.is_complete(c.tokens));
  const bool is_full = static_cast<std::int64_t>(c.tokens.size()) >= options.max_new_tokens ||
                       s.position + 1 >= config().context;
  if (!ended && !is_full) {
    s.token = token;
    return false;
  }
  c.truncated = !ended;
  if (++r.finished == r.asked.samples) {
    done.push_back({s.ticket, std::move(r.completions)});
    requests.erase(s.ticket);
  }
  return true;
}

// Frees a slot. The last slot moves into its place with its keys and values, so that the used rows
// of the cache stay without gaps.
void generation_engine::state::release(std::size_t index) {
  const std::size_t last = slots.size() - 1;
  if (index != last) {
    cache.move(static_cast<std::int64_t>(last), static_cast<std::int64_t>(index),
               slots[last].position + 1);
    slots[index] = slots[last];
  }
  slots.pop_back();
}

std::vector<finished_request> generation_engine::step() {
  const c10::InferenceMode inference;
  std::vector<finished_request> done;
  const std::size_t before = state_->slots.size();
  if (before > 0) {
    const at::Tensor logits = state_->decode();
    for (auto& s : state_->slots) ++s.position;
    state_->take_samples(logits, 0, done);
  }
  const std::size_t kept = state_->slots.size();
  state_->admit();
  if (state_->slots.size() > kept) {
    // The first token of a new sample is drawn from the logits at the end of its prompt.
    std::vector<at::Tensor> rows;
    for (std::size_t i = kept; i < state_->slots.size(); ++i)
      rows.push_back(state_->requests.at(state_->slots[i].ticket).last_logits);
    state_->take_samples(at::cat(rows, 0), static_cast<std::int64_t>(kept), done);
  }
  return done;
}

std::size_t generation_engine::active() const { return state_->slots.size(); }
std::size_t generation_engine::waiting() const {
  std::size_t count = 0;
  for (const std::uint64_t ticket : state_->queue) {
    const auto& r = state_->requests.at(ticket);
    count += r.asked.samples - r.admitted;
  }
  return count;
}
std::uint64_t generation_engine::tokens_generated() const { return state_->written; }

}  // namespace hone
