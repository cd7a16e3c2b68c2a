#include "policy/sampling/attention_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "policy/sampling/page_book.hpp"

namespace hone {
namespace {

using sequences = std::pair<std::vector<attention_plan::slot>, std::vector<attention_plan::prompt>>;

sequences random_sequences(std::mt19937& random, std::size_t max_slots) {
  sequences made;
  auto& [slots, prompts] = made;
  const std::size_t count = 1 + random() % max_slots;
  while (slots.size() < count) {
    const std::size_t group = std::min<std::size_t>(1 + random() % 20, count - slots.size());
    prompts.push_back(
        {1000 + static_cast<int>(prompts.size()), 1 + static_cast<std::int64_t>(random() % 2000)});
    for (std::size_t i = 0; i < group; ++i)
      slots.push_back({static_cast<int>(slots.size()),
                       1 + static_cast<std::int64_t>(random() % 2000), prompts.size() - 1});
  }
  std::shuffle(slots.begin(), slots.end(), random);
  return made;
}

// Counts for each query (slot and query head of a kv head) how often a part covers each token, by
// row of the page table: what the kernels `attend` and `join` do.
using coverage = std::map<std::pair<std::int32_t, std::int64_t>, int>;

void cover(const attention_part& part, coverage& seen) {
  for (std::int64_t token = 0; token < part.tokens; ++token)
    ++seen[{part.row, part.first * page_tokens + token}];
}

TEST(AttentionPlan, HasEveryQueryMeetEachOfItsTokensOnce) {
  std::mt19937 random(7);
  for (const std::int64_t shared_heads : {1, 3, 7, 16}) {
    for (int round = 0; round < 5; ++round) {
      const auto [slots, prompts] = random_sequences(random, 40);
      const std::int64_t most = max_parts(static_cast<std::int64_t>(slots.size()), 8);
      const attention_plan plan = plan_attention(slots, prompts, shared_heads, most);
      ASSERT_LE(static_cast<std::int64_t>(plan.parts.size()), most);
      ASSERT_EQ(plan.slots.size(), slots.size());
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const slot_parts& s = plan.slots[i];
        for (const std::int64_t head : {std::int64_t{0}, shared_heads - 1}) {
          coverage seen;
          for (std::int32_t p = 0; p < s.own_count; ++p) {
            const attention_part& part = plan.parts[static_cast<std::size_t>(s.own + p)];
            ASSERT_EQ(part.rank, 0);
            ASSERT_LT(head, part.ranks);
            ASSERT_EQ(plan.members[static_cast<std::size_t>(part.member)],
                      static_cast<std::int32_t>(i));
            cover(part, seen);
          }
          const std::int64_t rank = s.member * shared_heads + head;
          for (std::int32_t p = 0; p < s.shared_count; ++p) {
            const attention_part& part = plan.parts[static_cast<std::size_t>(
                s.shared + p * s.shared_step + rank / part_queries)];
            ASSERT_GE(rank, part.rank);
            ASSERT_LT(rank, std::min<std::int64_t>(part.rank + part_queries, part.ranks));
            ASSERT_EQ(plan.members[static_cast<std::size_t>(part.member + rank / shared_heads)],
                      static_cast<std::int32_t>(i));
            cover(part, seen);
          }
          ASSERT_EQ(static_cast<std::int64_t>(seen.size()),
                    slots[i].tokens + prompts[slots[i].prompt].tokens);
          for (const auto& [token, times] : seen) ASSERT_EQ(times, 1);
        }
      }
    }
  }
}

TEST(AttentionPlan, ReadsAPromptOncePerSixteenQueriesAndNotOncePerSample) {
  // 16 samples of one prompt of 4,096 tokens, three query heads for each kv head: three rows of 16.
  std::vector<attention_plan::slot> slots;
  for (int i = 0; i < 16; ++i) slots.push_back({i, 10, 0});
  const std::vector<attention_plan::prompt> prompts = {{99, 4096}};
  const attention_plan plan = plan_attention(slots, prompts, 3, max_parts(16, 3));
  std::int64_t pages = 0;
  for (const attention_part& part : plan.parts) pages += part.row == 99 ? part.pages : 0;
  EXPECT_EQ(pages, 3 * pages_for(4096));
}

}  // namespace
}  // namespace hone
