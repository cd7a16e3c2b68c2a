#include "policy/sampling/attention_plan.hpp"

#include <algorithm>

#include "policy/sampling/page_book.hpp"

namespace hone {
namespace {

// A warp that reads fewer pages does not earn what joining its part costs.
constexpr std::int64_t fewest_pages = 2;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Counts the parts at `pages` pages each.
std::int64_t count_parts(std::span<const attention_plan::slot> slots,
                         std::span<const attention_plan::prompt> prompts,
                         std::span<const std::int64_t> blocks, std::int64_t pages) {
  std::int64_t count = 0;
  for (const auto& s : slots) count += divide_up(pages_for(s.tokens), pages);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    count += divide_up(pages_for(prompts[i].tokens), pages) * blocks[i];
  return count;
}

// Appends the parts of a sequence for one block of queries after another: chunk by chunk. Returns
// the number of chunks.
std::int32_t append_parts(const attention_part& all, std::int64_t tokens, std::int64_t blocks,
                          std::int64_t pages, std::vector<attention_part>& parts) {
  const std::int64_t whole = pages_for(tokens);
  std::int32_t chunks = 0;
  for (std::int64_t first = 0; first < whole; first += pages) {
    ++chunks;
    for (std::int64_t block = 0; block < blocks; ++block) {
      attention_part part = all;
      part.first = static_cast<std::int32_t>(first);
      part.pages = static_cast<std::int32_t>(std::min(pages, whole - first));
      part.tokens = static_cast<std::int32_t>(
          std::min<std::int64_t>(part.pages * page_tokens, tokens - first * page_tokens));
      part.rank = static_cast<std::int32_t>(block * part_queries);
      parts.push_back(part);
    }
  }
  return chunks;
}

}  // namespace

std::int64_t max_parts(std::int64_t slots, std::int64_t kv_heads) {
  constexpr std::int64_t warps = 132 * 16;  // that an H100 or H200 runs at a time
  return std::max(4 * slots, divide_up(warps, kv_heads));
}

attention_plan plan_attention(std::span<const attention_plan::slot> slots,
                              std::span<const attention_plan::prompt> prompts,
                              std::int64_t shared_heads, std::int64_t most) {
  attention_plan plan;
  std::vector<std::vector<std::int32_t>> members(prompts.size());
  std::vector<std::int32_t> rank(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto& of_prompt = members[slots[i].prompt];
    rank[i] = static_cast<std::int32_t>(of_prompt.size());
    of_prompt.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::int64_t> blocks;
  for (const auto& of_prompt : members)
    blocks.push_back(
        divide_up(static_cast<std::int64_t>(of_prompt.size()) * shared_heads, part_queries));
  // Without the last, shorter chunk of each sequence, this many pages each would do.
  std::int64_t pages = std::max(fewest_pages, count_parts(slots, prompts, blocks, 1) / most);
  while (count_parts(slots, prompts, blocks, pages) > most) ++pages;

  std::vector<slot_parts> of_prompt(prompts.size());
  std::vector<std::int32_t> first_member(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    attention_part all;
    all.row = prompts[i].row;
    all.member = first_member[i] = static_cast<std::int32_t>(plan.members.size());
    all.ranks =
        static_cast<std::int32_t>(static_cast<std::int64_t>(members[i].size()) * shared_heads);
    plan.members.insert(plan.members.end(), members[i].begin(), members[i].end());
    of_prompt[i].shared = static_cast<std::int32_t>(plan.parts.size());
    of_prompt[i].shared_step = static_cast<std::int32_t>(blocks[i]);
    of_prompt[i].shared_count =
        blocks[i] == 0 ? 0 : append_parts(all, prompts[i].tokens, blocks[i], pages, plan.parts);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slot_parts found = of_prompt[slots[i].prompt];
    attention_part all;
    all.row = slots[i].row;
    all.member = first_member[slots[i].prompt] + rank[i];
    all.ranks = static_cast<std::int32_t>(shared_heads);
    found.member = rank[i];
    found.own = static_cast<std::int32_t>(plan.parts.size());
    found.own_count = append_parts(all, slots[i].tokens, 1, pages, plan.parts);
    plan.slots.push_back(found);
  }
  return plan;
}

}  // namespace hone
