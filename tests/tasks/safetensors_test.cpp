#include "tasks/safetensors.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <stdexcept>

#include "tests/support/safetensors_text.hpp"

namespace hone {
namespace {

std::string sample() {
  static const std::string a(24, '\1');
  static const std::string b(8, '\2');
  return testing_support::safetensors_text(
      {{"weight", "F32", {2, 3}, a}, {"index", "I64", {1}, b}, {"empty", "F16", {0, 4}, ""}});
}

TEST(Safetensors, WrittenTensorsReadBack) {
  const std::string file = sample();
  const auto tensors = parse_safetensors(file);
  ASSERT_EQ(tensors.size(), 3U);
  for (const safetensor& t : tensors) {
    if (t.name != "weight") continue;
    EXPECT_EQ(t.dtype, "F32");
    EXPECT_EQ(t.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(t.bytes, std::string(24, '\1'));
  }
}

TEST(Safetensors, SaysItsFormatAsTransformersWantsIt) {
  std::ostringstream out;
  write_safetensors(out, {{"weight", "U8", {2}, "ab"}});
  EXPECT_NE(out.str().find(R"("__metadata__":{"format":"pt"})"), std::string::npos);
  EXPECT_EQ(parse_safetensors(out.str()).size(), 1U);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string file = sample();
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_safetensors(std::string_view(file).substr(0, size)), std::runtime_error)
        << size;
  }
}

TEST(Safetensors, RefusesOverlapsGapsAndWrongSizes) {
  const auto with_header = [](const std::string& header, std::size_t body) {
    const std::uint64_t size = header.size();
    return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(body, 'x');
  };
  for (
      const char* header : {
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
          R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}})",
          R"({"a":{"dtype":"F99","shape":[3],"data_offsets":[0,12]}})",
          R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,12]}})",
          R"({"a":{"dtype":"F32","shape":[-3],"data_offsets":[0,12]}})",
          R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[12,0]}})",
          R"([1,2])",
          R"({"a":3})",
          "not json",
      }) {
    EXPECT_THROW(parse_safetensors(with_header(header, 12)), std::runtime_error) << header;
  }
}

TEST(Safetensors, SurvivesFlippedBits) {
  std::mt19937_64 random(1);
  const std::string file = sample();
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = file;
    damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    try {
      for (const safetensor& t : parse_safetensors(damaged))
        EXPECT_LE(t.bytes.size(), damaged.size());
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace
}  // namespace hone
