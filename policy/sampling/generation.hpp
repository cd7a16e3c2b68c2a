#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "policy/network/sampling_distribution.hpp"
#include "policy/network/transformer.hpp"
#include "policy/text/tokenizer.hpp"

namespace hone {

struct generation_options {
  // Sequences that are generated at the same time.
  std::int64_t slots = 32;
  std::int64_t max_new_tokens = 256;
  // Share of a GPU's memory that keys and values may take where they lie in pages
  // (paged_network.hpp). Samples wait while it is full.
  double memory_share = 0.2;
  sampling_distribution sampling;    // a temperature of 0 is greedy decoding
  std::vector<token_id> end_tokens;  // each ends a completion and is its last token
  // Says of a completion's tokens so far whether it is complete without an end token; asked after
  // each token, and by default never.
  std::function<bool(const std::vector<token_id>&)> is_complete;
  std::uint64_t seed = 0;
};

struct completion {
  std::vector<token_id> tokens;
  // Natural logarithm (fp32) of each token's probability under the distribution that it was sampled
  // from (sampling_distribution). Greedy decoding records the probability under the softmax.
  std::vector<float> log_probabilities;
  // Versions of the weights that produced the tokens, in order: (version, number of tokens).
  std::vector<std::pair<std::uint64_t, std::uint32_t>> versions;
  // True if max_new_tokens or the context ended the completion, and neither an end token nor
  // is_complete().
  bool truncated = false;
};

// The room that a prompt must leave for a completion: as many tokens as a completion may have, or
// at least one token, so that longer completions are truncated.
enum class answer_room { whole, any };

struct generation_request {
  std::uint64_t ticket = 0;      // chosen by the caller; unique among unfinished requests
  std::vector<token_id> prompt;  // at least one token
  std::uint32_t samples = 1;     // completions to sample; at least one
  answer_room room = answer_room::any;
  bool is_greedy = false;  // takes the most likely token, whatever the temperature
};

struct finished_request {
  std::uint64_t ticket = 0;
  std::vector<completion> completions;
};

// Samples completions of many prompts at once, one token per sequence and step (continuous
// batching). A free slot is given to the next waiting sample, so no request waits for the longest
// completion of another. The weights may be replaced between any two steps; keys and values that
// are already cached stay as the earlier weights computed them. Must be used by one thread at a
// time.
class generation_engine {
 public:
  generation_engine(const decoder_config& config, const generation_options& options);
  ~generation_engine();

  // Replaces the weights from the next step on; must be called before the first step. `weights`
  // must have the shapes of the config. Their device and dtype must be the same in every call;
  // steps run on that device. The engine copies the weights.
  void set_weights(const decoder_weights& weights, std::uint64_t version);
  std::uint64_t version() const;

  // Queues a request. Throws policy_error if the prompt is empty or does not leave the room for a
  // completion in the context.
  void submit(const generation_request& request);
  // Generates one token for every active sequence. Returns the requests that this step finished.
  std::vector<finished_request> step();

  // Returns the number of samples that have a slot.
  std::size_t active() const;
  // Returns the number of samples that have no slot yet.
  std::size_t waiting() const;
  bool idle() const { return active() == 0 && waiting() == 0; }
  std::uint64_t tokens_generated() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
