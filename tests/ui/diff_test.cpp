#include "ui/code/diff.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "tests/ui/markup.hpp"
#include "ui/code/highlight.hpp"

namespace hone {
namespace {

using testing_support::hostile_texts;
using testing_support::parsed;
using lines = std::vector<std::string_view>;

// Checks that changes lead from one text to the other, removed lines first, and returns the number
// of lines removed and added.
std::size_t checked_changes(const lines& before, const lines& after) {
  std::size_t b = 0;
  std::size_t a = 0;
  std::size_t changed = 0;
  change_kind previous = change_kind::equal;
  for (const line_change& c : line_changes(before, after)) {
    EXPECT_EQ(c.before, b);
    EXPECT_EQ(c.after, a);
    EXPECT_FALSE(previous == change_kind::added && c.kind == change_kind::removed);
    if (c.kind == change_kind::equal) {
      EXPECT_EQ(before.at(b), after.at(a));
    } else {
      ++changed;
    }
    if (c.kind != change_kind::added) ++b;
    if (c.kind != change_kind::removed) ++a;
    previous = c.kind;
  }
  EXPECT_EQ(b, before.size());
  EXPECT_EQ(a, after.size());
  return changed;
}

// Returns the minimal number by dynamic programming.
std::size_t min_changes(const lines& before, const lines& after) {
  std::vector<std::size_t> row(after.size() + 1);
  for (std::size_t a = 0; a <= after.size(); ++a) row[a] = a;
  for (std::size_t b = 1; b <= before.size(); ++b) {
    std::size_t diagonal = row[0];
    row[0] = b;
    for (std::size_t a = 1; a <= after.size(); ++a) {
      const std::size_t above = row[a];
      row[a] = before[b - 1] == after[a - 1] ? diagonal : 1 + std::min(above, row[a - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

TEST(LineChangesTest, AreMinimalOnRandomTexts) {
  std::mt19937 random(7);
  const lines words = {"a", "b", "c", "d"};
  for (int round = 0; round < 500; ++round) {
    lines before(random() % 12);
    lines after(random() % 12);
    for (auto& line : before) line = words[random() % words.size()];
    for (auto& line : after) line = words[random() % words.size()];
    EXPECT_EQ(checked_changes(before, after), min_changes(before, after));
  }
}

TEST(LineChangesTest, FallBackWithoutEqualLinesInTheMiddleWhenTheyAreMany) {
  lines before(3000, "x");
  lines after(3000, "y");
  before[1500] = after[1500] = "same";
  before.front() = after.front() = before.back() = after.back() = "end";
  EXPECT_EQ(checked_changes(before, after), 2U * 2998U);
}

TEST(LineChangesTest, OneInsertionIntoManyLinesIsFound) {
  lines before(100'000, "x");
  lines after = before;
  after.insert(after.begin() + 50'000, "y");
  EXPECT_EQ(checked_changes(before, after), 1U);
}

TEST(LineChangesTest, TakeBoundedTime) {
  std::vector<std::string> distinct;
  for (int i = 0; i < 2000; ++i) distinct.push_back(std::to_string(i) + std::string(4000, 'x'));
  const lines before(distinct.begin(), distinct.begin() + 999);
  const lines after(distinct.begin() + 1000, distinct.begin() + 1999);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(checked_changes(before, after), 1998U);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(taken.count(), 5);
}

TEST(DiffTest, UnifiedHasSignsNumbersAndContext) {
  const auto found = parsed(
      unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\nold\n11\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\nnew\n11\n")
          .str());
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.text,
            "6 equal lines"
            "777"
            "888"
            "999"
            "10-old"
            "10+new"
            "111111");
}

TEST(DiffTest, SideBySideMarksTheChangedPart) {
  const std::string table = side_by_side_diff("block = [32];\nx\n", "block = [4];\nx\ny\n").str();
  EXPECT_NE(table.find("<td class=\"removed\">block = [<mark>32</mark>];</td>"), table.npos)
      << table;
  EXPECT_NE(table.find("<td class=\"added\">block = [<mark>4</mark>];</td>"), table.npos);
  EXPECT_NE(
      table.find("<td class=\"none\"></td><td class=\"number\">3</td><td class=\"added\">y</td>"),
      table.npos);
}

TEST(DiffTest, SideBySideDoesNotMarkUnlikeLines) {
  const std::string table = side_by_side_diff("abcdef", "uvwxyzuvwxyz").str();
  EXPECT_EQ(table.find("<mark>"), table.npos) << table;
  EXPECT_EQ(parsed(side_by_side_diff("a\xC3\xA9z", "a\xC3\xA8z").str()).error, "");
}

TEST(DiffTest, EqualTextsAreOneStretch) {
  EXPECT_EQ(parsed(unified_diff("a\nb\n", "a\nb\n").str()).text, "2 equal lines");
  EXPECT_EQ(parsed(side_by_side_diff("", "").str()).text, "");
}

TEST(DiffTest, OutputIsBounded) {
  std::string before;
  std::string after;
  for (int i = 0; i < 100'000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  before += std::string(256 * 1024, 'x');
  for (const std::string& table : {unified_diff(before, after, {3, 100}).str(),
                                   side_by_side_diff(before, after, {3, 100}).str()}) {
    EXPECT_LT(table.size(), 30'000U);
    EXPECT_NE(table.find(" more rows"), table.npos);
    EXPECT_EQ(parsed(table).error, "");
  }
}

TEST(DiffTest, HostileTextsStayText) {
  for (const std::string& hostile : hostile_texts()) {
    for (const std::string& other : {std::string("x\n"), hostile + "y", "z" + hostile}) {
      EXPECT_EQ(parsed(unified_diff(hostile, other).str()).error, "") << hostile.substr(0, 80);
      EXPECT_EQ(parsed(side_by_side_diff(other, hostile).str()).error, "");
    }
  }
}

}  // namespace
}  // namespace hone
