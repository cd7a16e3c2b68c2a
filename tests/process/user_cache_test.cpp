#include "process/user_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

namespace hone {
namespace {

constexpr std::array<const char*, 2> variables = {"XDG_CACHE_HOME", "HOME"};

// Sets both variables, or removes one for null; the destructor restores them.
class UserCache : public testing::Test {
 protected:
  UserCache() {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (const char* const value = std::getenv(variables[i])) before_[i] = value;
    }
  }
  ~UserCache() override {
    for (std::size_t i = 0; i < variables.size(); ++i)
      set(variables[i], before_[i] ? before_[i]->c_str() : nullptr);
  }
  static void set(const char* name, const char* value) {
    if (value != nullptr) {
      setenv(name, value, 1);
    } else {
      unsetenv(name);
    }
  }
  static std::filesystem::path cache_with(const char* cache, const char* home) {
    set("XDG_CACHE_HOME", cache);
    set("HOME", home);
    return user_cache();
  }

 private:
  std::array<std::optional<std::string>, 2> before_;
};

TEST_F(UserCache, IsWhereTheUserWantsCaches) {
  EXPECT_EQ(cache_with("/caches", "/home/somebody"), "/caches/hone");
  EXPECT_EQ(cache_with(nullptr, "/home/somebody"), "/home/somebody/.cache/hone");
  EXPECT_EQ(cache_with("", "/home/somebody"), "/home/somebody/.cache/hone");
}

TEST_F(UserCache, IsNowhereForAUserWithoutAHome) {
  EXPECT_EQ(cache_with(nullptr, nullptr), "");
  EXPECT_EQ(cache_with("", ""), "");
}

}  // namespace
}  // namespace hone
