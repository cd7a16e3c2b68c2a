#include "policy/sampling/page_book.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace hone {
namespace {

TEST(PageBook, GivesEveryTokenAPlaceOfItsOwn) {
  page_book book(40, 8, 16);
  std::mt19937 random(1);
  std::vector<std::pair<int, std::int64_t>> sequences;  // row and pages
  for (int round = 0; round < 500; ++round) {
    if (!sequences.empty() && random() % 2 == 0) {
      const std::size_t leaves = random() % sequences.size();
      book.give_back(sequences[leaves].first);
      sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(leaves));
    }
    const std::int64_t pages = 1 + static_cast<std::int64_t>(random() % 16);
    const auto row = book.take(pages);
    EXPECT_TRUE(row || pages > book.free_pages() || sequences.size() == 8);
    if (row) sequences.emplace_back(*row, pages);
    std::set<std::int32_t> places;
    std::int64_t tokens = 0;
    for (const auto& [of, its_pages] : sequences) {
      for (std::int64_t token = 0; token < its_pages * page_tokens; ++token, ++tokens) {
        const std::int32_t place = book.place(of, token);
        EXPECT_LT(place, 40 * page_tokens);
        EXPECT_EQ(place % page_tokens, token % page_tokens);
        EXPECT_EQ(book.table()[static_cast<std::size_t>(of * 16 + token / page_tokens)],
                  place / page_tokens);
        places.insert(place);
      }
    }
    ASSERT_EQ(places.size(), static_cast<std::size_t>(tokens));
    ASSERT_EQ(book.free_pages(), 40 - tokens / page_tokens);
  }
}

TEST(PageBook, SaysOfEachChangeOnce) {
  page_book book(4, 2, 4);
  EXPECT_TRUE(book.has_changed());
  EXPECT_FALSE(book.has_changed());
  ASSERT_TRUE(book.take(2));
  EXPECT_TRUE(book.has_changed());
  EXPECT_FALSE(book.take(3));
  EXPECT_FALSE(book.has_changed());
}

}  // namespace
}  // namespace hone
