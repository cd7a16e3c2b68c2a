#include "process/cut_line.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::read_file;
using testing_support::temporary_folder;

// Returns the remaining text of a file with this text.
std::string left_of(const std::string& text) {
  const temporary_folder folder;
  std::ofstream(folder / "lines", std::ios::binary) << text;
  remove_cut_line(folder / "lines");
  return read_file(folder / "lines");
}

TEST(CutLine, IsRemovedAndWholeLinesStay) {
  EXPECT_EQ(left_of("one\ntwo\nthr"), "one\ntwo\n");
  EXPECT_EQ(left_of("one\ntwo\n"), "one\ntwo\n");
  EXPECT_EQ(left_of("on"), "");
  EXPECT_EQ(left_of(""), "");
  EXPECT_EQ(left_of("\n"), "\n");
}

TEST(CutLine, MayBeOfAnyLength) {
  for (const std::size_t length : {4094, 4095, 4096, 4097, 10000}) {
    const std::string cut(length, 'x');
    EXPECT_EQ(left_of("one\n" + cut), "one\n") << length;
    EXPECT_EQ(left_of(cut), "") << length;
    EXPECT_EQ(left_of(cut + "\n"), cut + "\n") << length;
  }
}

TEST(CutLine, NeedsNoFile) {
  const temporary_folder folder;
  remove_cut_line(folder / "lines");
  EXPECT_FALSE(std::filesystem::exists(folder / "lines"));
}

}  // namespace
}  // namespace hone
