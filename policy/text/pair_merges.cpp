#include "policy/text/pair_merges.hpp"

#include <functional>
#include <queue>

namespace hone {
namespace {

constexpr std::size_t none = ~std::size_t{0};

// A token in a row in which merged tokens are skipped.
struct symbol {
  std::uint32_t id;
  std::size_t previous;
  std::size_t next;
  bool is_gone = false;
};

struct candidate {
  std::uint32_t rank;
  std::size_t left;
  std::uint32_t a, b, result;
  bool operator>(const candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

}  // namespace

void pair_merges::add(std::uint32_t left, std::uint32_t right, std::uint32_t result) {
  merges_.emplace(std::pair{left, right}, merge{count_++, result});
}

std::vector<std::uint32_t> pair_merges::apply(const std::vector<std::uint32_t>& tokens) const {
  std::vector<symbol> symbols;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    symbols.push_back({tokens[i], i > 0 ? i - 1 : none, i + 1 < tokens.size() ? i + 1 : none});
  std::priority_queue<candidate, std::vector<candidate>, std::greater<>> candidates;
  const auto consider = [&](std::size_t left) {
    if (left == none || symbols[left].next == none) return;
    const std::uint32_t a = symbols[left].id;
    const std::uint32_t b = symbols[symbols[left].next].id;
    if (const auto found = merges_.find({a, b}); found != merges_.end())
      candidates.push({found->second.rank, left, a, b, found->second.result});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) consider(i);
  while (!candidates.empty()) {
    const candidate best = candidates.top();
    candidates.pop();
    symbol& left = symbols[best.left];
    if (left.is_gone || left.id != best.a || left.next == none || symbols[left.next].id != best.b)
      continue;  // an earlier merge has consumed one of the two symbols
    symbol& right = symbols[left.next];
    left.id = best.result;
    left.next = right.next;
    right.is_gone = true;
    if (left.next != none) symbols[left.next].previous = best.left;
    consider(best.left);
    consider(left.previous);
  }
  std::vector<std::uint32_t> merged;
  for (const symbol& s : symbols) {
    if (!s.is_gone) merged.push_back(s.id);
  }
  return merged;
}

}  // namespace hone
