#include "evaluation/sandbox/child/common/rounding_noise.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "evaluation/sandbox/child/common/random_factors.hpp"

namespace hone {
namespace {

constexpr double unit = 0x1p-24;     // the unit roundoff of float32
constexpr double max_of_error = 16;  // JUDGE_MOST_OF_AN_ELEMENT in element_rule.cuh
constexpr double max_rms = 3;        // JUDGE_MOST_RMS

using computation = std::function<at::Tensor()>;

class RoundingNoise : public testing::Test {
 protected:
  RoundingNoise() {
    prepare_rounding_noise();
    make_factors(at::kCPU);
    at::manual_seed(7);
  }

  static at::Tensor run(const computation& f, const rounding_noise& noise,
                        decision_use use = decision_use::ignore,
                        decision_log* decisions = nullptr) {
    decision_log none;
    at::Tensor y;
    with_rounding_noise(noise, use, decisions != nullptr ? *decisions : none, [&] { y = f(); });
    return y;
  }

  // Returns the largest distance of some runs with noise from the run without, by element.
  static at::Tensor spread(const computation& f, rounding_noise noise = {}) {
    const at::Tensor own = f();
    at::Tensor widest = at::zeros_like(own, at::kDouble);
    noise.amplitude = 1;
    for (noise.seed = 1; noise.seed <= 8; ++noise.seed)
      widest = at::maximum(widest, (run(f, noise).to(at::kDouble) - own.to(at::kDouble)).abs());
    return widest;
  }

  // Returns the errors of `actual` in what rounding explains: the spread of an element or of a
  // typical one, plus a rounding.
  static at::Tensor errors(const at::Tensor& actual, const computation& f,
                           const rounding_noise& noise = {}) {
    const at::Tensor own = f().to(at::kDouble);
    const at::Tensor explained = spread(f, noise) + unit * own.abs() + 0x1p-126;
    const double typical = explained.log().mean().exp().item<double>();
    return (actual.to(at::kDouble) - own).abs() / explained.clamp_min(typical);
  }

  // Returns the largest error of an element in what the rule allows.
  static double ratio(const at::Tensor& actual, const computation& f,
                      const rounding_noise& noise = {}) {
    return errors(actual, f, noise).max().item<double>() / max_of_error;
  }

  // Returns the root mean square of the errors in what the rule allows of many elements.
  static double rms_ratio(const at::Tensor& actual, const computation& f) {
    return std::sqrt(errors(actual, f).square().mean().item<double>()) / max_rms;
  }
};

TEST_F(RoundingNoise, ChangesNothingWithoutAnAmplitude) {
  const at::Tensor x = at::randn({50, 50});
  const computation f = [&] { return at::softmax(at::matmul(x, x), 1); };
  EXPECT_TRUE(at::equal(run(f, {0, 3}), f()));
}

TEST_F(RoundingNoise, IsTheSameForTheSameSeed) {
  const at::Tensor x = at::randn({50, 50});
  const computation f = [&] { return at::matmul(x, x); };
  EXPECT_TRUE(at::equal(run(f, {1, 3}), run(f, {1, 3})));
  EXPECT_FALSE(at::equal(run(f, {1, 3}), run(f, {1, 4})));
}

TEST_F(RoundingNoise, OfTwoEqualErrorsDoesNotCancelInEveryRun) {
  const at::Tensor x = at::rand({100000}, at::kDouble) + 1;
  const at::Tensor relative = spread([&] { return x.exp().log(); }) / x;
  EXPECT_GT(relative.min().item<double>(), 0x1p-53 / 8);
}

TEST_F(RoundingNoise, IsAFewRoundingsOfAnElementwiseResult) {
  const at::Tensor x = at::rand({1000}) + 1;
  const at::Tensor relative = spread([&] { return x * x; }) / (x * x);
  EXPECT_GT(relative.min().item<double>(), unit / 2);
  EXPECT_LT(relative.max().item<double>(), 8 * unit);
}

TEST_F(RoundingNoise, LeavesCopiesAndSelectionsAlone) {
  const at::Tensor x = at::randn({40, 30});
  const computation f = [&] {
    return at::cat({x.t().contiguous().flatten(), at::relu(x).flatten(), at::amax(x, 1)});
  };
  EXPECT_TRUE(at::equal(run(f, {1, 3}), f()));
}

TEST_F(RoundingNoise, GrowsWithTheNumberOfTermsOfASum) {
  const auto of = [&](std::int64_t terms) {
    const at::Tensor x = at::rand({16, terms});
    const computation f = [&] { return x.sum(1); };
    return (spread(f) / f()).mean().item<double>();
  };
  EXPECT_LT(of(16), 10 * unit);
  EXPECT_GT(of(65536), 50 * unit);
}

TEST_F(RoundingNoise, CountsOnlyTheTermsThatAreNotZeroOfSparseInputs) {
  at::Tensor x = at::zeros({16, 65536});
  x.narrow(1, 1234, 8).copy_(at::rand({16, 8}) + 1);
  const computation f = [&] { return x.sum(1); };
  rounding_noise sparse;
  sparse.is_sparse = true;
  EXPECT_LT((spread(f, sparse) / f()).max().item<double>(), 16 * unit);
}

TEST_F(RoundingNoise, AddsUpWhereExponentialsOfSmallInputsAreEqual) {
  const at::Tensor x = at::randn({16, 4096}) / 1000;
  rounding_noise small;
  small.has_small_inputs = true;
  const computation sum_of_exponentials = [&] { return x.exp().sum(1); };
  EXPECT_GT(spread(sum_of_exponentials, small).mean().item<double>(),
            8 * spread(sum_of_exponentials).mean().item<double>());
  const computation sum = [&] { return x.sum(1); };
  EXPECT_LT(spread(sum, small).mean().item<double>(), 2 * spread(sum).mean().item<double>());
}

TEST_F(RoundingNoise, IsTheRoundingOfOperandsToTf32ForRelaxedProductsAlone) {
  const at::Tensor a = at::randn({64, 512});
  const at::Tensor b = at::randn({512, 64});
  rounding_noise relaxed;
  relaxed.tf32 = true;
  const computation product = [&] { return at::matmul(a, b); };
  EXPECT_GT(spread(product, relaxed).mean().item<double>(),
            30 * spread(product).mean().item<double>());
  const computation loss = [&] { return (a * a).mean(1); };
  EXPECT_LT(spread(loss, relaxed).mean().item<double>(), 2 * spread(loss).mean().item<double>());
}

TEST_F(RoundingNoise, ReplaysDecisionsSoThatOnlyContinuousErrorsRemain) {
  const at::Tensor x = at::randn({100000});
  const computation f = [&] { return at::floor(x * 1000 + 0.5F) + x; };
  decision_log decisions;
  const at::Tensor recorded = run(f, {0, 0}, decision_use::record, &decisions);
  EXPECT_EQ(decisions.size(), 1U);
  // Noise of many roundings changes some decisions, unless they are replayed.
  const auto changed = [&](decision_use use) {
    return ((run(f, {64, 5}, use, &decisions) - recorded).abs() > 0.5).sum().item<std::int64_t>();
  };
  EXPECT_GT(changed(decision_use::ignore), 0);
  EXPECT_EQ(changed(decision_use::replay), 0);
}

TEST_F(RoundingNoise, DecidesOtherwiseOnlyNextToAStep) {
  const at::Tensor x = at::arange(-50, 50) / 10.0 + 0.05;  // halfway between steps
  const computation f = [&] { return at::round(x * 10 + 0.5); };
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_TRUE(at::equal(run(f, {4, seed}), f())) << seed;
}

TEST_F(RoundingNoise, KeepsSelectedValuesWithTheirIndices) {
  const at::Tensor x = at::randn({200, 100});
  const computation f = [&] {
    const auto [values, indices] = at::max(x * 1.0001F, 1);
    return values;
  };
  EXPECT_LT((spread(f) / f().abs()).max().item<double>(), 8 * unit);
}

// Pairs of a reference's computation and another algorithm for the same result.
struct algorithm {
  const char* name;
  computation reference;
  computation other;
};

at::Tensor in_order(const at::Tensor& x) {  // sums the last dimension, term by term
  at::Tensor sum = at::zeros_like(x.select(-1, 0));
  for (std::int64_t i = 0; i < x.size(-1); ++i) sum = sum + x.select(-1, i);
  return sum;
}

std::vector<algorithm> other_algorithms() {
  const at::Tensor x = at::randn({32, 3000});
  const at::Tensor near = 2 + at::randn({32, 500});
  const at::Tensor a = at::randn({24, 300});
  const at::Tensor b = at::randn({300, 24});
  const at::Tensor image = at::randn({2, 3, 12, 12});
  const at::Tensor filter = at::randn({4, 3, 3, 3});
  const auto variance = [](const at::Tensor& v) {
    return (v * v).mean(1, true) - v.mean(1, true).square();
  };
  return {
      {"a sum in order", [=] { return x.sum(1); }, [=] { return in_order(x); }},
      {"a sum in float64", [=] { return x.sum(1); },
       [=] { return x.to(at::kDouble).sum(1).to(at::kFloat); }},
      {"a product in order", [=] { return at::matmul(a, b); },
       [=] { return in_order(a.unsqueeze(1) * b.t().unsqueeze(0)); }},
      {"a convolution by frequencies", [=] { return at::conv2d(image, filter, {}, 1, 1); },
       [=] {
         const auto padded = at::constant_pad_nd(image, {1, 3, 1, 3});
         const auto spectrum =
             at::fft_rfft2(padded).unsqueeze(1) *
             at::conj(at::fft_rfft2(filter, at::IntArrayRef{16, 16})).unsqueeze(0);
         return at::fft_irfft2(spectrum.sum(2)).slice(2, 0, 12).slice(3, 0, 12);
       }},
      {"a softmax without its largest element", [=] { return at::softmax(x, 1); },
       [=] {
         const auto e = at::exp(x);
         return e / e.sum(1, true);
       }},
      {"a norm of sums of squares", [=] { return at::layer_norm(near, {500}); },
       [=] { return (near - near.mean(1, true)) * at::rsqrt(variance(near) + 1e-5); }},
      {"a variance of sums of squares", [=] { return at::var(near, 1, false); },
       [=] { return variance(near).squeeze(1); }},
      {"a sigmoid by tanh", [=] { return at::sigmoid(x); },
       [=] { return 0.5F * at::tanh(0.5F * x) + 0.5F; }},
      {"gelu by erf", [=] { return at::gelu(x); },
       [=] { return x * 0.5F * (1 + at::erf(x * 0.70710678F)); }},
      {"an expanded square", [=] { return (near - 1).square(); },
       [=] { return near * near - 2 * near + 1; }},
  };
}

TEST_F(RoundingNoise, ExplainsTheErrorsOfOtherAlgorithms) {
  for (const algorithm& one : other_algorithms())
    EXPECT_LE(ratio(one.other(), one.reference), 1) << one.name;
}

TEST_F(RoundingNoise, DoesNotExplainHalfPrecisionOrMissingTerms) {
  for (const algorithm& one : other_algorithms()) {
    const at::Tensor y = one.reference();
    EXPECT_GT(ratio(y.to(at::kHalf).to(at::kFloat), one.reference), 1) << one.name;
    EXPECT_GT(ratio(y.to(at::kBFloat16).to(at::kFloat), one.reference), 1) << one.name;
    EXPECT_GT(ratio(y * 1.001F, one.reference), 1) << one.name;
  }
  const at::Tensor x = at::randn({32, 3000});
  EXPECT_GT(ratio(x.slice(1, 0, 2999).sum(1), [&] { return x.sum(1); }), 1);
}

// A 3 x 3 convolution with a padding of 1 by Winograd's algorithm for tiles of 4 x 4.
at::Tensor by_tiles_of_four(const at::Tensor& image, const at::Tensor& filter) {
  const auto matrix = [](std::vector<float> rows, std::int64_t columns) {
    return at::tensor(rows).view({-1, columns});
  };
  const at::Tensor of_input = matrix({4, 0,  -5, 0,  1, 0,  //
                                      0, -4, -4, 1,  1, 0,  //
                                      0, 4,  -4, -1, 1, 0,  //
                                      0, -2, -1, 2,  1, 0,  //
                                      0, 2,  -1, -2, 1, 0,  //
                                      0, 4,  0,  -5, 0, 1},
                                     6);
  const at::Tensor of_filter = matrix({6, 0, 0,     //
                                       -4, -4, -4,  //
                                       -4, 4, -4,   //
                                       1, 2, 4,     //
                                       1, -2, 4,    //
                                       0, 0, 24},
                                      3)
                                   .div(24);
  const at::Tensor of_output = matrix({1, 1, 1,  1, 1,  0,  //
                                       0, 1, -1, 2, -2, 0,  //
                                       0, 1, 1,  4, 4,  0,  //
                                       0, 1, -1, 8, -8, 1},
                                      6);
  const std::int64_t images = image.size(0);
  const std::int64_t tiles = image.size(2) / 4;
  const at::Tensor parts = at::constant_pad_nd(image, {1, 1, 1, 1}).unfold(2, 6, 4).unfold(3, 6, 4);
  const at::Tensor v = at::einsum("ij,nchwjk,lk->ilcnhw", {of_input, parts, of_input}).flatten(3);
  const at::Tensor u = at::einsum("ij,ocjk,lk->iloc", {of_filter, filter, of_filter});
  const at::Tensor products = at::matmul(u, v).view({6, 6, filter.size(0), images, tiles, tiles});
  return at::einsum("ij,jlonhw,kl->nohiwk", {of_output, products, of_output})
      .reshape({images, filter.size(0), image.size(2), image.size(3)});
}

TEST_F(RoundingNoise, ExplainsWinogradsAlgorithmForAnyInputs) {
  const at::Tensor filter = at::randn({32, 64, 3, 3});
  const at::Tensor image = at::randn({2, 64, 16, 16});
  at::Tensor outlier = image.clone();
  outlier[1][5][7][7] += 20000;
  at::Tensor sparse = at::zeros_like(image);
  sparse.narrow(1, 3, 2).copy_(image.narrow(1, 3, 2));
  for (const at::Tensor& x : {image, outlier, sparse, image * 10 + 25}) {
    const computation f = [&] { return at::conv2d(x, filter, {}, 1, 1); };
    EXPECT_LE(ratio(by_tiles_of_four(x, filter), f), 1);
    EXPECT_LE(rms_ratio(by_tiles_of_four(x, filter), f), 1);
  }
}

TEST_F(RoundingNoise, DoesNotExplainConvolutionsOfSixteenBits) {
  const at::Tensor filter = at::randn({32, 64, 3, 3});
  const at::Tensor image = at::randn({2, 64, 16, 16});
  const at::Tensor up_filter = at::randn({64, 32, 4, 4});
  const auto bits = [](const at::Tensor& x, int count) {
    const auto [mantissa, exponent] = at::frexp(x);
    return at::ldexp(at::round(at::ldexp(mantissa, at::tensor(count))), exponent - count);
  };
  const computation down = [&] { return at::conv2d(image, filter, {}, 1, 1); };
  const computation up = [&] { return at::conv_transpose2d(image, up_filter, {}, 2, 1); };
  EXPECT_GT(rms_ratio(at::conv2d(bits(image, 16), filter, {}, 1, 1), down), 1);
  EXPECT_GT(rms_ratio(at::conv_transpose2d(bits(image, 16), up_filter, {}, 2, 1), up), 1);
  EXPECT_GT(rms_ratio(down() * 1.00002F, down), 1);
  EXPECT_GT(rms_ratio(up() * 1.00002F, up), 1);
  const auto cut = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); };
  const at::Tensor two_pieces = at::conv2d(cut(image), cut(filter), {}, 1, 1) +
                                at::conv2d(cut(image - cut(image)), cut(filter), {}, 1, 1) +
                                at::conv2d(cut(image), cut(filter - cut(filter)), {}, 1, 1);
  EXPECT_GT(rms_ratio(two_pieces, down), 1);
}

TEST_F(RoundingNoise, DoesNotExplainProductsOfOneTf32OrBfloat16Piece) {
  const at::Tensor a = at::randn({32, 400});
  const at::Tensor b = at::randn({400, 32});
  const computation f = [&] { return at::matmul(a, b); };
  const auto cut = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); };
  const at::Tensor low_a = cut(a - cut(a));
  const at::Tensor low_b = cut(b - cut(b));
  EXPECT_GT(ratio(at::matmul(cut(a), cut(b)), f), 1);
  EXPECT_GT(ratio(at::matmul(cut(a), cut(b)) + at::matmul(low_a, cut(b)), f), 1);
  // Three pieces of each operand, of eight bits, are all of float32.
  const at::Tensor rest_a = a - cut(a) - low_a;
  const at::Tensor rest_b = b - cut(b) - low_b;
  const at::Tensor six_products = at::matmul(cut(a), cut(b)) + at::matmul(low_a, cut(b)) +
                                  at::matmul(cut(a), low_b) + at::matmul(low_a, low_b) +
                                  at::matmul(rest_a, cut(b)) + at::matmul(cut(a), rest_b);
  EXPECT_LE(ratio(six_products, f), 1);
}

}  // namespace
}  // namespace hone
