#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone {

// How one step of decoding divides its attention among the warps of a GPU. A part is some queries
// over some pages of one sequence. The tokens of a prompt are read once for all samples that share
// it, those of a sample for itself. The parts of a slot are joined afterwards (flash decoding: Dao
// et al. 2023; shared prefixes: Juravsky et al. 2024, arXiv 2402.05099).

// Queries of a part: rows of the tensor cores' matrices.
inline constexpr std::int64_t part_queries = 16;

// Layouts of kernels/attention.cuh.
struct attention_part {
  std::int32_t row = 0;    // of the page table
  std::int32_t first = 0;  // page of the row
  std::int32_t pages = 0;
  std::int32_t tokens = 0;  // valid ones in the pages
  std::int32_t member = 0;  // index of the first slot of the queries in `members`
  std::int32_t rank =
      0;  // of the first query; each member has one for each query head of a kv head
  std::int32_t ranks = 0;  // queries of all members
  std::int32_t unused = 0;
};
struct slot_parts {
  std::int32_t own = 0;  // first part of the slot's tokens
  std::int32_t own_count = 0;
  std::int32_t shared = 0;        // first part of its prompt
  std::int32_t shared_count = 0;  // chunks of the prompt
  std::int32_t shared_step = 0;   // parts of one chunk
  std::int32_t member = 0;        // its rank among the members
};

struct attention_plan {
  // A sequence that is being sampled, and the prompt that it follows.
  struct slot {
    int row = 0;              // of the page table
    std::int64_t tokens = 0;  // without the prompt; at least one
    std::size_t prompt = 0;   // index in `prompts`
  };
  struct prompt {
    int row = 0;
    std::int64_t tokens = 0;
  };

  std::vector<attention_part> parts;
  std::vector<slot_parts> slots;
  std::vector<std::int32_t> members;  // slots by prompt
};

// Returns a bound on the parts of `slots` slots: enough to keep a GPU's warps busy.
std::int64_t max_parts(std::int64_t slots, std::int64_t kv_heads);

// Divides the attention of `slots` into at most `most` parts of about equal numbers of pages.
// `shared_heads` query heads, at most part_queries, share one head of keys and values. `most` must
// be at least max_parts().
attention_plan plan_attention(std::span<const attention_plan::slot> slots,
                              std::span<const attention_plan::prompt> prompts,
                              std::int64_t shared_heads, std::int64_t most);

}  // namespace hone
