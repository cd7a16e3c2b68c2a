#include "tasks/data_file.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/safetensors_text.hpp"

namespace hone {
namespace {

TEST(DataFile, FindsItsTensorsByName) {
  const std::string first(8, '\1');
  const std::string second(4, '\2');
  const data_file file("w.safetensors", testing_support::safetensors_text(
                                            {{"a", "F32", {2}, first}, {"b", "F32", {1}, second}}));
  ASSERT_NE(file.find("b"), nullptr);
  EXPECT_EQ(file.find("b")->bytes, second);
  EXPECT_EQ(file.find("a")->shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(file.find("c"), nullptr);
  const data_file copy = file;
  EXPECT_EQ(copy.find("a"), file.find("a")) << "copies share the parsed tensors";
}

TEST(DataFile, SaysEachTimeThatItIsDamaged) {
  const data_file file("w.safetensors", "no safetensors file");
  EXPECT_THROW((void)file.find("a"), std::runtime_error);
  EXPECT_THROW((void)file.find("a"), std::runtime_error);
}

TEST(DataFile, IsReadBySeveralThreadsAtOnce) {
  const std::string bytes(4, '\3');
  const data_file file("w.safetensors",
                       testing_support::safetensors_text({{"a", "F32", {1}, bytes}}));
  std::vector<const safetensor*> found(4);
  std::vector<std::thread> readers;
  for (const safetensor*& one : found) readers.emplace_back([&] { one = file.find("a"); });
  for (std::thread& reader : readers) reader.join();
  ASSERT_NE(file.find("a"), nullptr);
  for (const safetensor* one : found) EXPECT_EQ(one, file.find("a"));
}

}  // namespace
}  // namespace hone
