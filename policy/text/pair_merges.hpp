#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hone {

// The merges of byte-pair encoding: pairs of tokens that become one. Immutable after the last
// add(); any number of threads may use it.
class pair_merges {
 public:
  // Adds the next merge, which ranks behind those before. A pair that is there already stays.
  void add(std::uint32_t left, std::uint32_t right, std::uint32_t result);
  // Merges a row of tokens, the merge of the lowest rank first and the leftmost among equals, as
  // the Python package `tokenizers` does. Takes n log n steps for n tokens.
  std::vector<std::uint32_t> apply(const std::vector<std::uint32_t>& tokens) const;
  std::uint32_t size() const { return count_; }

 private:
  struct merge {
    std::uint32_t rank;
    std::uint32_t result;
  };
  struct pair_hash {
    std::size_t operator()(const std::pair<std::uint32_t, std::uint32_t>& p) const noexcept {
      return (static_cast<std::size_t>(p.first) << 32U | p.second) * 0x9e3779b97f4a7c15U;
    }
  };
  std::unordered_map<std::pair<std::uint32_t, std::uint32_t>, merge, pair_hash> merges_;
  std::uint32_t count_ = 0;
};

}  // namespace hone
