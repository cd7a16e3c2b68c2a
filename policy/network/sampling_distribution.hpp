#pragma once

#include <cstdint>

namespace at {
class Tensor;
}

namespace hone {

// The distribution of tokens, which samplers draw from and which objectives are about. N is the
// number of tokens and V the size of the vocabulary; tensors are fp32 unless stated otherwise.

// The distribution that tokens are sampled from: the softmax of logits / temperature, restricted to
// the tokens that all of the following rules admit, and renormalized. The most likely token is
// always admitted.
struct sampling_distribution {
  double temperature = 1.0;
  // The nucleus: the smallest set of most likely tokens whose probabilities sum to at least `top_p`
  // (Holtzman et al. 2019, arXiv 1904.09751); 1 admits all tokens.
  double top_p = 1.0;
  // The `top_k` most likely tokens (Fan et al. 2018, arXiv 1805.04833); 0 admits all tokens.
  std::int64_t top_k = 0;
  // Tokens at least `min_p` times as likely as the most likely one (Nguyen et al. 2024, arXiv
  // 2407.01082); 0 admits all tokens.
  double min_p = 0;
};

// Returns whether a distribution is the whole softmax of logits / temperature.
inline bool is_plain(const sampling_distribution& s) {
  return s.temperature > 0 && s.top_p >= 1 && s.top_k == 0 && s.min_p <= 0;
}

// Returns ln p [N, V] of every token under the sampling distribution of `logits` [N, V]; minus
// infinity for tokens that are not admitted. If `kept` [N] (int64) is given, these tokens are
// admitted as well: a token that an earlier policy has sampled may have left the set since.
at::Tensor sampling_log_probabilities(const at::Tensor& logits, const sampling_distribution& s,
                                      const at::Tensor* kept = nullptr);

// Returns ln p [N] of `targets` [N] (int64) under the sampling distribution of `logits` [N, V],
// which admits the targets. For tokens that were just sampled from these logits, this is the
// probability with which they were sampled.
at::Tensor token_log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                   const sampling_distribution& s);

}  // namespace hone
