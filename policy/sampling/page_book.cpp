#include "policy/sampling/page_book.hpp"

#include <utility>

namespace hone {

page_book::page_book(std::int64_t pages, std::int64_t rows, std::int64_t row_pages)
    : row_pages_(row_pages),
      table_(static_cast<std::size_t>(rows * row_pages)),
      taken_(static_cast<std::size_t>(rows)) {
  for (std::int64_t row = rows; row-- > 0;) free_rows_.push_back(static_cast<int>(row));
  for (std::int64_t page = pages; page-- > 0;)
    free_pages_.push_back(static_cast<std::int32_t>(page));
}

std::optional<int> page_book::take(std::int64_t pages) {
  if (pages > free_pages() || pages > row_pages_ || free_rows_.empty()) return std::nullopt;
  const int row = free_rows_.back();
  free_rows_.pop_back();
  const auto begin = static_cast<std::size_t>(row * row_pages_);
  for (std::int64_t i = 0; i < pages; ++i) {
    table_[begin + static_cast<std::size_t>(i)] = free_pages_.back();
    free_pages_.pop_back();
  }
  taken_[static_cast<std::size_t>(row)] = pages;
  is_changed_ = true;
  return row;
}

void page_book::give_back(int row) {
  const auto begin = static_cast<std::size_t>(row * row_pages_);
  std::int64_t& taken = taken_[static_cast<std::size_t>(row)];
  while (taken > 0) free_pages_.push_back(table_[begin + static_cast<std::size_t>(--taken)]);
  free_rows_.push_back(row);
}

std::int32_t page_book::place(int row, std::int64_t token) const {
  const auto at = static_cast<std::size_t>(row * row_pages_ + token / page_tokens);
  return table_[at] * static_cast<std::int32_t>(page_tokens) +
         static_cast<std::int32_t>(token % page_tokens);
}

bool page_book::has_changed() { return std::exchange(is_changed_, false); }

}  // namespace hone
