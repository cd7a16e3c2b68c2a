#include <gtest/gtest.h>

#include "tasks/format_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;
using testing_support::write_file;

TEST(SourceFile, IsReadWhole) {
  const temporary_folder folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65535},
                                 std::size_t{65536}, std::size_t{65537}, std::size_t{1000000}}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31);
    write_file(folder / "file", bytes);
    EXPECT_EQ(read_source_file(folder / "file"), bytes) << size;
  }
}

// Files of /proc report a size of 0.
TEST(SourceFile, IsReadBeyondItsReportedSize) {
  EXPECT_EQ(read_source_file("/proc/self/status").substr(0, 5), "Name:");
}

TEST(SourceFile, MustExistAndMustNotBeAFolder) {
  const temporary_folder folder;
  EXPECT_THROW((void)read_source_file(folder.path()), format_error);
  EXPECT_THROW((void)read_source_file(folder / "nothing"), format_error);
}

}  // namespace
}  // namespace hone
