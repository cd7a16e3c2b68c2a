#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "policy/tokenizer.hpp"
#include "policy/transformer.hpp"

namespace hone {

struct generation_options {
  std::int64_t slots = 32;  // sequences that are written at the same time
  std::int64_t max_new_tokens = 256;
  double temperature = 1.0;  // 0: the likeliest token
  double top_p = 1.0;        // nucleus: the likeliest tokens that together have this probability
  token_id end_token = 0;    // ends a completion, and belongs to it
  std::uint64_t seed = 0;
};

struct completion {
  std::vector<token_id> tokens;
  std::vector<float> log_probabilities;  // natural, fp32, of the distribution at the sampling
                                         // temperature before top-p
  std::vector<std::pair<std::uint64_t, std::uint32_t>>
      versions;            // (weights' version, tokens), in order
  bool truncated = false;  // a length limit ended it, not the end token
};

struct generation_request {
  std::uint64_t ticket = 0;
  std::vector<token_id> prompt;  // at least one token
  std::uint32_t samples = 1;
};

struct finished_request {
  std::uint64_t ticket = 0;
  std::vector<completion> completions;
};

// Writes completions of many prompts at once, token by token. A slot that falls free is taken by
// the next sample that waits, so no request waits for another's longest completion; the weights may
// be replaced between any two steps. The keys and values of earlier tokens stay as the older
// weights made them. One thread.
class generation_engine {
 public:
  generation_engine(const decoder_config& config, const generation_options& options);
  ~generation_engine();

  // From the next step on. The weights must be of the config's shape; they are copied in the form
  // that steps are fastest with.
  void set_weights(const decoder_weights& weights, std::uint64_t version);
  std::uint64_t version() const;

  // Throws policy_error for a prompt that leaves no room for a token.
  void submit(const generation_request& request);
  // One token for every sequence under way. Requests whose last sample ended come back.
  std::vector<finished_request> step();

  std::size_t active() const;   // sequences under way
  std::size_t waiting() const;  // samples that have no slot yet
  bool idle() const { return active() == 0 && waiting() == 0; }
  std::uint64_t tokens_written() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
