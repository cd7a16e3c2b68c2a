#pragma once

#include <memory>

#include "policy/sampling/sequence_network.hpp"

namespace hone {

// Returns whether make_paged_network() can be used: weights in bfloat16 or float16 on a GPU of
// compute capability 8.0 or above, heads of 32, 64, 96 or 128 elements, at most 16 query heads for
// a head of keys and values, and a width, a feed-forward width and a vocabulary that are multiples
// of 8.
bool can_use_pages(const decoder_config& config, const decoder_weights& weights);

// Makes a network for a GPU. Keys and values lie in pages, and those of a
// prompt are shared by its samples. Prompts are read in pieces between the tokens of others. A step
// of decoding is a CUDA graph, recorded once for each of a few numbers of slots. Its work has a
// separate stream. Its set_weights() throws policy_error if the
// GPU's memory does not suffice.
std::unique_ptr<sequence_network> make_paged_network(const decoder_config& config,
                                                     const sequence_limits& limits,
                                                     const sampling_distribution& sampling,
                                                     const decoder_weights& like);

}  // namespace hone
