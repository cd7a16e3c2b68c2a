#pragma once

#include <span>
#include <vector>

#include "policy/network/sampling_distribution.hpp"
#include "policy/text/tokenizer.hpp"

namespace hone {

struct drawn_token {
  token_id token = 0;
  float log_probability = 0;  // natural logarithm, under the distribution that it was drawn from
};

// Replaces a uniform number where the most likely token is taken.
inline constexpr double greedy = -1;

// Draws a token for each row of logits [n, V] (fp32), by inverse transform sampling with the row's
// uniform number in [0, 1). Where that is `greedy`, takes the most likely token, whose
// log_probability is under the softmax. Runs on the logits' device and waits for the result.
std::vector<drawn_token> draw_tokens(const at::Tensor& logits, std::span<const double> uniform,
                                     const sampling_distribution& s);

}  // namespace hone
