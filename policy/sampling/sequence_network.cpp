#include "policy/sampling/sequence_network.hpp"

#include <ATen/ATen.h>

#include "policy/sampling/padded_network.hpp"
#include "policy/sampling/paged_network.hpp"

namespace hone {

std::unique_ptr<sequence_network> make_sequence_network(const decoder_config& config,
                                                        const sequence_limits& limits,
                                                        const sampling_distribution& sampling,
                                                        const decoder_weights& like) {
  if (can_use_pages(config, like)) return make_paged_network(config, limits, sampling, like);
  return make_padded_network(config, limits, sampling);
}

}  // namespace hone
