#include "policy/sampling/prompt_reader.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace hone {

// Returns the next pieces to read: whole prompts, or a piece of one that is longer than a piece.
std::vector<prompt_reader::piece> prompt_reader::next_pieces() {
  std::vector<piece> pieces;
  std::int64_t left = piece_tokens;
  for (const auto& [ticket, unread_prompt] : unread_) {
    open_prompt& p = *unread_prompt;
    const auto length = static_cast<std::int64_t>(p.tokens.size());
    const std::int64_t unread = length - p.read;
    if (pieces.empty()) {
      pieces.push_back({&p, p.read, p.read + std::min(unread, left)});
      if (p.read > 0 || unread > left) break;
    } else if (unread <= left) {
      pieces.push_back({&p, 0, length});
    } else {
      break;
    }
    left -= unread;
  }
  return pieces;
}

std::vector<std::uint64_t> prompt_reader::read() {
  if (unread_.empty()) return {};
  read_pieces(next_pieces());
  std::vector<std::uint64_t> done;
  while (!unread_.empty()) {
    const open_prompt& p = *unread_.front().second;
    if (p.read < static_cast<std::int64_t>(p.tokens.size())) break;
    done.push_back(unread_.front().first);
    unread_.pop_front();
  }
  return done;
}

void prompt_reader::read_pieces(const std::vector<piece>& pieces) {
  std::vector<int> numbers[3];  // tokens, positions, places
  std::vector<std::int64_t> last;
  for (const piece& one : pieces) {
    for (std::int64_t i = one.begin; i < one.end; ++i) {
      numbers[0].push_back(one.of->tokens[static_cast<std::size_t>(i)]);
      numbers[1].push_back(static_cast<int>(i));
      numbers[2].push_back(book_.place(one.of->row, i));
    }
    last.push_back(static_cast<std::int64_t>(numbers[0].size()) - 1);
    const auto length = static_cast<std::int64_t>(one.of->tokens.size());
    if (one.begin == 0 && one.end < length) {
      const auto room =
          at::empty({length, config_.kv_heads, config_.head_width}, layers_.queries(1).options());
      for (std::int64_t i = 0; i < config_.layers; ++i) {
        one.of->keys.push_back(at::empty_like(room));
        one.of->values.push_back(at::empty_like(room));
      }
    }
  }
  const auto n = static_cast<std::int64_t>(numbers[0].size());
  std::vector<at::Tensor> on_device;
  for (const auto& of_kind : numbers)
    on_device.push_back(at::tensor(of_kind, at::kInt).to(device_));
  layers_.run(
      n, {on_device[0].data_ptr<int>(), on_device[1].data_ptr<int>(), on_device[2].data_ptr<int>()},
      [&](std::size_t layer) { attend_prompts(layer, pieces, n); });
  const at::Tensor ends =
      layers_.hidden(n).index_select(0, at::tensor(last, at::kLong).to(device_));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    open_prompt& p = *pieces[i].of;
    p.read = pieces[i].end;
    if (p.read < static_cast<std::int64_t>(p.tokens.size())) continue;
    p.last_logits = layers_.logits(ends.narrow(0, static_cast<std::int64_t>(i), 1)).clone();
    p.keys.clear();
    p.values.clear();
  }
}

// Causal attention within each of the prompts, by FlashAttention over packed sequences (Dao 2023,
// arXiv 2307.08691). A piece attends to the pieces before it as well.
void prompt_reader::attend_prompts(std::size_t layer, const std::vector<piece>& pieces,
                                   std::int64_t n) {
  const decoder_config& c = config_;
  const at::Tensor all = layers_.queries(n).view({n, c.heads + 2 * c.kv_heads, c.head_width});
  const at::Tensor q = all.narrow(1, 0, c.heads);
  at::Tensor k = all.narrow(1, c.heads, c.kv_heads);
  at::Tensor v = all.narrow(1, c.heads + c.kv_heads, c.kv_heads);
  std::vector<int> ends_of_queries = {0};
  std::vector<int> ends_of_keys = {0};
  std::int64_t longest = 0;
  for (const piece& one : pieces) {
    ends_of_queries.push_back(ends_of_queries.back() + static_cast<int>(one.end - one.begin));
    longest = std::max(longest, one.end - one.begin);
  }
  ends_of_keys = ends_of_queries;
  std::int64_t longest_keys = longest;
  const piece& first = pieces.front();
  if (!first.of->keys.empty()) {
    at::Tensor& keys = first.of->keys[layer];
    at::Tensor& values = first.of->values[layer];
    keys.narrow(0, first.begin, n).copy_(k);
    values.narrow(0, first.begin, n).copy_(v);
    k = keys.narrow(0, 0, first.end);
    v = values.narrow(0, 0, first.end);
    longest_keys = first.end;
    ends_of_keys = {0, static_cast<int>(first.end)};
  }
  const auto on_device = [&](const std::vector<int>& ends) {
    return at::tensor(ends, at::kInt).to(device_);
  };
  const at::Tensor mixed = std::get<0>(at::_flash_attention_forward(
      q, k, v, on_device(ends_of_queries), on_device(ends_of_keys), longest, longest_keys, 0.0,
      /*is_causal=*/true, /*return_debug_mask=*/false));
  layers_.mixed(n).copy_(mixed.reshape({n, c.heads * c.head_width}));
}

}  // namespace hone
