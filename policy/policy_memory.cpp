#include "policy/policy_memory.hpp"

namespace hone {

policy_memory memory_of(const decoder_config& c, std::int64_t adapter_rank, std::size_t devices) {
  const auto attention = static_cast<double>(2 * (c.heads + c.kv_heads) * c.head_width);
  const double of_layer =
      static_cast<double>(c.width) * (attention + static_cast<double>(3 * c.feed_forward));
  const auto embeddings = static_cast<double>(c.vocabulary * c.width * (c.tied_head ? 1 : 2));
  const double each = c.dtype == "float32" ? 4 : 2;
  const auto divided = static_cast<double>(devices);
  const double moments = 2 * sizeof(float) / divided;
  const double master = c.dtype == "float32" ? 0 : sizeof(float) / divided;
  policy_memory m;
  m.parameters = static_cast<double>(c.layers) * of_layer + embeddings;
  const auto heads = static_cast<double>((c.heads + c.kv_heads) * c.head_width);
  const auto sides = 4 * static_cast<double>(c.width) + 2 * heads +
                     3 * static_cast<double>(c.width + c.feed_forward);
  const double adapters = static_cast<double>(c.layers * adapter_rank) * sides;
  m.of_learner = adapter_rank > 0
                     ? m.parameters * 3 * each + adapters * (2 * sizeof(float) + moments)
                     : m.parameters * (4 * each + moments + master);
  m.of_generator = m.parameters * each;
  m.of_token = each * static_cast<double>(2 * c.layers * c.kv_heads * c.head_width);
  return m;
}

}  // namespace hone
