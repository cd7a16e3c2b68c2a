#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "policy/decoder_config.hpp"
#include "policy/sampling/gpu_layers.hpp"
#include "policy/sampling/page_book.hpp"
#include "policy/text/tokenizer.hpp"

namespace hone {

// A prompt whose samples are waited for or being sampled.
struct open_prompt {
  std::vector<token_id> tokens;
  int row = 0;                           // of the page table
  std::int64_t read = 0;                 // tokens
  std::vector<at::Tensor> keys, values;  // by layer, of a prompt that is being read in pieces
  at::Tensor last_logits;                // [1, V], once it is read
  std::size_t slots = 0;                 // that continue it
  bool is_closed = false;                // no more slots will
};

// Reads prompts into pages, some of them at a time: as many whole ones as a piece holds, or a piece
// of a longer one. Only for the .cpp files of this room, as it includes LibTorch.
class prompt_reader {
 public:
  // Most tokens that are read between two tokens of the samples. More would keep the samples
  // waiting, and fewer would leave the GPU idle.
  static constexpr std::int64_t piece_tokens = 4096;

  prompt_reader(const decoder_config& config, gpu_layers& layers, const page_book& book,
                c10::Device device)
      : config_(config), layers_(layers), book_(book), device_(device) {}

  // Queues a prompt, which must stay where it is until it is read.
  void add(std::uint64_t ticket, open_prompt& prompt) { unread_.emplace_back(ticket, &prompt); }
  bool has_unread() const { return !unread_.empty(); }
  // Reads the next piece. Returns the prompts that are read to their end now.
  std::vector<std::uint64_t> read();

 private:
  // Some tokens of a prompt.
  struct piece {
    open_prompt* of = nullptr;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::vector<piece> next_pieces();
  void read_pieces(const std::vector<piece>& pieces);
  void attend_prompts(std::size_t layer, const std::vector<piece>& pieces, std::int64_t n);

  decoder_config config_;
  gpu_layers& layers_;
  const page_book& book_;
  c10::Device device_;
  std::deque<std::pair<std::uint64_t, open_prompt*>> unread_;
};

}  // namespace hone
