#include "evaluation/sandbox/child/common/flop_count.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {
namespace {

TEST(FlopCount, CountsMultiplicationsAndAdditionsOfProducts) {
  const at::Tensor a = at::ones({3, 5});
  const at::Tensor b = at::ones({5, 7});
  EXPECT_EQ(count_flops([&] { at::matmul(a, b); }), 2U * 3 * 5 * 7);
  EXPECT_EQ(count_flops([&] { at::addmm(at::ones({7}), a, b); }), 2U * 3 * 5 * 7);
  EXPECT_EQ(count_flops([&] {
              at::matmul(at::ones({4, 3, 5}), at::ones({4, 5, 7}));
            }),
            2U * 4 * 3 * 5 * 7);
  EXPECT_EQ(count_flops([&] { at::matmul(a, at::ones({5})); }), 2U * 3 * 5);
  EXPECT_EQ(count_flops([&] {
              at::einsum("bij,bjk->bik", {at::ones({2, 3, 5}), at::ones({2, 5, 7})});
            }),
            2U * 2 * 3 * 5 * 7);
}

TEST(FlopCount, CountsTheFilterOfAConvolutionAtEveryPosition) {
  const at::Tensor x = at::ones({2, 4, 10, 12});
  // Six filters of 4 x 3 x 3. Stride 2 and padding 1 leave 5 x 6 positions.
  EXPECT_EQ(count_flops([&] {
              at::conv2d(x, at::ones({6, 4, 3, 3}), {}, {2, 2}, {1, 1});
            }),
            2U * 2 * 6 * 5 * 6 * 4 * 9);
  EXPECT_EQ(count_flops([&] {
              at::conv2d(x, at::ones({8, 1, 3, 3}), {}, {1, 1}, {1, 1}, {1, 1}, 4);
            }),
            2U * 2 * 8 * 10 * 12 * 9)
      << "four groups";
  EXPECT_EQ(count_flops([&] {
              at::conv_transpose2d(x, at::ones({4, 6, 3, 3}), {}, {2, 2});
            }),
            2U * 2 * 4 * 10 * 12 * 6 * 9);
}

TEST(FlopCount, CountsBothProductsOfAttention) {
  const at::Tensor q = at::ones({1, 2, 8, 16});
  EXPECT_EQ(count_flops([&] { at::scaled_dot_product_attention(q, q, q); }),
            2U * 2 * 8 * 8 * (16 + 16));
}

TEST(FlopCount, CountsNothingForElementwiseOperationsAndReductions) {
  EXPECT_EQ(count_flops([] { at::softmax(at::ones({8, 8}) * 2.0, 1).sum(); }), 0U);
}

TEST(FlopCount, CountsTheOperatorsThatAHostProgramCalls) {
  torchscript_program program(
      "def forward(x: Tensor, w: Tensor) -> Tensor:\n    return torch.relu(F.linear(x, w))\n", 2,
      0);
  std::vector<c10::IValue> arguments = {at::ones({3, 5}), at::ones({7, 5})};
  EXPECT_EQ(count_flops([&] { program.forward(arguments); }), 2U * 3 * 5 * 7);
}

}  // namespace
}  // namespace hone
