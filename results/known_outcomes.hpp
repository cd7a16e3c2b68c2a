#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "messages/names.hpp"
#include "results/compact_groups.hpp"

namespace hone {

// The newest evaluation of a variant on a device type in one scope, without its measurements.
struct known_outcome {
  std::uint32_t variant = 0;      // index into compact_groups::variants
  std::uint32_t device_type = 0;  // index of its name
  std::uint32_t scope = 0;
  std::uint32_t judge = 0;
  double score = 0;
  Outcome outcome = Outcome::INFRASTRUCTURE;
};

// These outcomes by variant.
class known_outcomes {
 public:
  explicit known_outcomes(std::size_t variants) : begins_(variants + 1) { all_.reserve(variants); }

  // Evaluations come in the order of their variants.
  void add(const known_outcome& one) {
    for (auto at = all_.rbegin(); at != all_.rend() && at->variant == one.variant; ++at) {
      if (at->device_type != one.device_type || at->scope != one.scope) continue;
      if (one.judge >= at->judge) *at = one;
      return;
    }
    all_.push_back(one);
  }
  void finish() {
    for (const known_outcome& one : all_) ++begins_[one.variant + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  }

  // Below: after finish().
  std::span<const known_outcome> of(std::uint32_t variant) const {
    if (variant == compact_groups::no_variant) return {};
    return std::span(all_).subspan(begins_[variant], begins_[variant + 1] - begins_[variant]);
  }
  // Returns null if there is none.
  const known_outcome* find(std::uint32_t variant, std::uint32_t device_type,
                            std::uint32_t scope) const {
    for (const known_outcome& one : of(variant)) {
      if (one.device_type == device_type && one.scope == scope) return &one;
    }
    return nullptr;
  }

 private:
  std::vector<known_outcome> all_;
  std::vector<std::uint32_t> begins_;  // in all_, by variant
};

}  // namespace hone
