#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hone {

inline constexpr std::int64_t page_tokens = 32;

inline std::int64_t pages_for(std::int64_t tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

// Which pages of keys and values belong to which sequence (PagedAttention: Kwon et al. 2023, arXiv
// 2309.06180). A row of its table lists the pages of one sequence, in order. A prompt has a row,
// and each of its samples has one for the tokens that follow, so that samples share their prompt.
// Confined to one thread.
class page_book {
 public:
  // `row_pages` is the most pages of a sequence.
  page_book(std::int64_t pages, std::int64_t rows, std::int64_t row_pages);

  // Takes pages for a sequence and returns its row; nullopt if too few pages or no row are free.
  std::optional<int> take(std::int64_t pages);
  void give_back(int row);

  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_pages_.size()); }
  // Returns the page and the place in it of a sequence's token, as page * page_tokens + place.
  std::int32_t place(int row, std::int64_t token) const;
  // Returns the table, [rows, row_pages].
  std::span<const std::int32_t> table() const { return table_; }
  // Returns whether the table has changed since the last call.
  bool has_changed();

 private:
  std::int64_t row_pages_;
  std::vector<std::int32_t> table_;
  std::vector<std::int64_t> taken_;  // pages by row
  std::vector<int> free_rows_;
  std::vector<std::int32_t> free_pages_;
  bool is_changed_ = true;
};

}  // namespace hone
