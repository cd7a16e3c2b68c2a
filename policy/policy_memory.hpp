#pragma once

#include <cstddef>

#include "policy/decoder_config.hpp"

namespace hone {

// Share of a GPU's memory that a policy may take where a device judges as well: the device takes
// half for its arenas, and the processes of its programs some of the rest.
inline constexpr double share_beside_judge = 0.4;

// Device memory of a policy, in bytes and without activations.
struct policy_memory {
  double parameters = 0;  // number of weights
  // Of the learner: weights, those of a reference policy and those that generators are given,
  // gradients, two moments and, of weights that are not float32, master copies.
  double of_learner = 0;
  double of_generator = 0;  // each: its weights
  double of_token = 0;      // keys and values of one token of a sequence
};

// With an adapter rank, gradients, moments and master copies are of adapters of all projections
// alone. `devices` train together, and share moments and master copies.
policy_memory memory_of(const decoder_config& config, std::int64_t adapter_rank = 0,
                        std::size_t devices = 1);

}  // namespace hone
