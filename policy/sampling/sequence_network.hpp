#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policy/decoder_config.hpp"
#include "policy/network/decoder_weights.hpp"
#include "policy/sampling/token_drawing.hpp"

namespace hone {

// Capacity of a network.
struct sequence_limits {
  std::int64_t slots = 32;
  std::int64_t max_new_tokens = 256;
  double memory_share = 0.2;  // of the GPU's memory that keys and values may take
};

// Computes the sequences that generation_engine samples: holds their keys and values and says which
// token follows. Prompts go by ticket. Samples go by slot: attach() adds one behind the others, and
// release() moves the last one into the place of the one that leaves, so that slots have no gaps.
// Must be used by one thread at a time. Functions throw policy_error.
class sequence_network {
 public:
  // The next token of a slot, which has not been processed yet, and its position.
  struct input {
    token_id token = 0;
    std::int64_t position = 0;
  };
  virtual ~sequence_network() = default;

  // Replaces the weights from the next token on by a copy of `weights`, which is complete when this
  // returns. Keys and values stay.
  virtual void set_weights(const decoder_weights& weights) = 0;

  // Begins a prompt. Returns false if there is no room for it and one sample at present.
  virtual bool open(std::uint64_t ticket, const std::vector<token_id>& prompt) = 0;
  // Reads some of the prompts that are open. Returns those that are read to their end now.
  virtual std::vector<std::uint64_t> read_prompts() = 0;
  // Returns whether an open prompt is not read to its end.
  virtual bool has_unread() const = 0;
  // Adds a slot that continues a prompt that has been read. Returns false if there is no room at
  // present.
  virtual bool attach(std::uint64_t ticket) = 0;
  // Says that no more slots will continue a prompt.
  virtual void close(std::uint64_t ticket) = 0;
  virtual void release(std::size_t slot) = 0;

  // Draw a token for each slot, with its uniform number (token_drawing.hpp): the token behind
  // `inputs`, or the first one behind the prompt, for the slots from `first` on.
  virtual std::vector<drawn_token> decode(std::span<const input> inputs,
                                          std::span<const double> uniform) = 0;
  virtual std::vector<drawn_token> draw_first(std::size_t first,
                                              std::span<const double> uniform) = 0;
};

// Makes a network for weights like these: one with pages and CUDA graphs (paged_network.hpp) where
// it can be, and otherwise one for every device and dtype (padded_network.hpp).
std::unique_ptr<sequence_network> make_sequence_network(const decoder_config& config,
                                                        const sequence_limits& limits,
                                                        const sampling_distribution& sampling,
                                                        const decoder_weights& like);

}  // namespace hone
