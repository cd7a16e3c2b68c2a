#pragma once

#include <memory>

#include "policy/sampling/sequence_network.hpp"

namespace hone {

// Makes a network of LibTorch's operators alone, for every device and dtype. Each slot has its own
// copy of its prompt's keys and values, with room for the longest sequence so far. read_prompts()
// reads all that are open.
std::unique_ptr<sequence_network> make_padded_network(const decoder_config& config,
                                                      const sequence_limits& limits,
                                                      const sampling_distribution& sampling);

}  // namespace hone
