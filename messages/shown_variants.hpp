#pragma once

#include <vector>

#include "messages/ids.hpp"
#include "messages/schema/variant.capnp.h"

namespace hone {

// Returns the variants whose programs the prompt of a draw may show: its exemplars, in their order,
// and then its attempt.
inline std::vector<variant_id> shown_variants(const schema::Draw::Reader& draw) {
  std::vector<variant_id> shown;
  for (const auto exemplar : draw.getExemplars()) shown.emplace_back(exemplar.getVariantId());
  if (draw.hasAttempt()) shown.emplace_back(draw.getAttempt().getVariantId());
  return shown;
}

}  // namespace hone
