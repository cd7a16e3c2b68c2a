#include "network/http/bearer_tokens.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "network/identity.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::eventually;
using testing_support::read_file;
using testing_support::temporary_folder;
using testing_support::write_file;

class BearerTokens : public testing::Test {
 protected:
  const std::filesystem::path& file() const { return file_; }

  temporary_folder folder_;
  std::filesystem::path file_ = folder_ / "clients";
};

TEST_F(BearerTokens, FindTheClientOfATokenAndHoldNoToken) {
  const std::string first = add_client(file(), "first");
  const std::string second = add_client(file(), "second");
  bearer_tokens tokens(file());
  EXPECT_EQ(tokens.find_client(first), "first");
  EXPECT_EQ(tokens.find_client(second), "second");
  EXPECT_EQ(tokens.find_client(""), std::nullopt);
  EXPECT_EQ(tokens.find_client(first + "x"), std::nullopt);
  EXPECT_EQ(read_file(file()).find(first), std::string::npos);
  struct stat facts {};
  ASSERT_EQ(stat(file().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST_F(BearerTokens, TakeChangesOfTheFileAndKeepToItWhileItIsBroken) {
  const std::string first = add_client(file(), "first");
  bearer_tokens tokens(file());
  write_file(file(), "half a li");
  EXPECT_EQ(tokens.find_client(first), "first");
  write_file(file(), "# nobody\n");
  EXPECT_TRUE(eventually([&] { return !tokens.find_client(first).has_value(); }));
  const std::string next = add_client(file(), "next");
  EXPECT_TRUE(eventually([&] { return tokens.find_client(next) == "next"; }));
}

TEST_F(BearerTokens, RefuseLinesOfAnotherForm) {
  EXPECT_THROW(bearer_tokens(folder_ / "missing"), network_error);
  for (const char* text : {"name\n", "name 123\n", "na/me 0\n"}) {
    write_file(file(), text);
    EXPECT_THROW(bearer_tokens{file()}, network_error) << text;
  }
  write_file(file(), "");
  add_client(file(), "a");
  EXPECT_THROW(add_client(file(), "a"), network_error);
  EXPECT_THROW(add_client(file(), "a b"), network_error);
}

}  // namespace
}  // namespace hone
