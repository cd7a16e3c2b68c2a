#include "evaluation/sandbox/child/common/launch_checks.hpp"
#include "tests/support/refusal.hpp"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace hone {
namespace {

using kinds = parameter_facts::kinds;
using testing::HasSubstr;

std::string refusal_of(const std::vector<c10::IValue>& arguments,
                       const std::vector<parameter_facts>& parameters, bool on_gpu = false) {
  return testing_support::refusal_of<program_error>([&] {
    try {
      marshaled_arguments marshaled("k", arguments, parameters, on_gpu);
    } catch (const program_error& e) {
      EXPECT_EQ(e.outcome, Outcome::LAUNCH_ERROR);
      throw;
    }
  });
}

template <class T>
T value_at(marshaled_arguments& marshaled, std::size_t i) {
  T value{};
  std::memcpy(&value, marshaled.addresses()[i], sizeof value);
  return value;
}

TEST(LaunchArguments, AreConvertedToTheTypesOfTheParameters) {
  const at::Tensor tensor = at::zeros({4});
  marshaled_arguments m("k", {tensor, std::int64_t{-7}, std::int64_t{1} << 40, 0.5, 0.25, true},
                        {{kinds::pointer, 8},
                         {kinds::integer, 4},
                         {kinds::integer, 8},
                         {kinds::floating, 4},
                         {kinds::floating, 8},
                         {kinds::boolean, 1}},
                        false);
  EXPECT_EQ(value_at<void*>(m, 0), tensor.data_ptr());
  EXPECT_EQ(value_at<std::int32_t>(m, 1), -7);
  EXPECT_EQ(value_at<std::int64_t>(m, 2), std::int64_t{1} << 40);
  EXPECT_EQ(value_at<float>(m, 3), 0.5F);
  EXPECT_EQ(value_at<double>(m, 4), 0.25);
  EXPECT_EQ(value_at<bool>(m, 5), true);
}

TEST(LaunchArguments, AreRefusedIfNumberKindSizeOrRangeDoNotFit) {
  const at::Tensor tensor = at::zeros({4});
  EXPECT_THAT(refusal_of({tensor}, {}), HasSubstr("1 arguments, the kernel has 0 parameters"));
  EXPECT_THAT(refusal_of({tensor}, {{kinds::integer, 8}}),
              HasSubstr("argument 1 is a Tensor, the kernel's parameter is an integer of 8 bytes"));
  EXPECT_THAT(refusal_of({std::int64_t{1}}, {{kinds::pointer, 8}}),
              HasSubstr("is an int, the kernel's parameter is a pointer"));
  EXPECT_THAT(refusal_of({std::int64_t{1}}, {{kinds::floating, 4}}), HasSubstr("is an int"));
  EXPECT_THAT(refusal_of({1.5}, {{kinds::integer, 4}}), HasSubstr("is a float"));
  EXPECT_THAT(refusal_of({true}, {{kinds::integer, 4}}), HasSubstr("is a bool"));
  EXPECT_THAT(refusal_of({std::int64_t{1}}, {{kinds::integer, 2}}), HasSubstr("of 2 bytes"));
  EXPECT_THAT(refusal_of({std::int64_t{1} << 33}, {{kinds::integer, 4}}),
              HasSubstr("does not fit into 4 bytes"));
  EXPECT_THAT(refusal_of({std::int64_t{1}}, {{kinds::other, 16}}),
              HasSubstr("a struct of 16 bytes"));
  EXPECT_EQ(refusal_of({std::int64_t{4294967295}}, {{kinds::integer, 4}}), "");  // fits if unsigned
}

TEST(LaunchArguments, AreRefusedOnAGpuIfATensorIsInHostMemory) {
  EXPECT_THAT(refusal_of({at::zeros({4})}, {{kinds::pointer, 8}}, true),
              HasSubstr("in the host's memory"));
}

TEST(LaunchSizes, HaveTheLimitsOfCudaOnEveryDevice) {
  EXPECT_EQ(checked_grid("k", {5}).count(), 5U);
  EXPECT_EQ(checked_grid("k", {0, 3}).count(), 0U);
  EXPECT_EQ(checked_block("k", {32, 32}).count(), 1024U);
  for (const std::vector<std::int64_t>& grid :
       {std::vector<std::int64_t>{}, {1, 1, 1, 1}, {-1}, {2147483648LL}, {1, 65536}})
    EXPECT_THROW(checked_grid("k", grid), program_error);
  for (const std::vector<std::int64_t>& block :
       {std::vector<std::int64_t>{0}, {1025}, {32, 33}, {1, 1, 65}})
    EXPECT_THROW(checked_block("k", block), program_error);
  EXPECT_THROW(check_shared_bytes("k", -1), program_error);
  EXPECT_THROW(check_shared_bytes("k", max_shared_bytes + 1), program_error);
  EXPECT_NO_THROW(check_shared_bytes("k", max_shared_bytes));
}

}  // namespace
}  // namespace hone
