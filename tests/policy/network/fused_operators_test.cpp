#include "policy/network/fused_operators.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/cuda_driver.hpp"
#include "cuda/nvrtc_library.hpp"
#include "policy/network/decoder_weights.hpp"
#include "policy/network/transformer.hpp"
#include "policy/policy_device.hpp"
#include "policy/training/objectives.hpp"

namespace hone {
namespace {

TEST(FusedKernels, CompileForEveryTypeAndArchitecture) {
  const nvrtc_library nvrtc;
  for (const char* element : {"__nv_bfloat16", "__half", "float"}) {
    for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
      std::vector<std::string> options = {std::string("--gpu-architecture=") + architecture,
                                          "--std=c++17", std::string("-DELEMENT=") + element};
      for (const std::string& folder : nvrtc.include_folders()) options.push_back("-I" + folder);
      const auto made = nvrtc.compile(fused_kernel_source(), options, fused_kernel_names());
      EXPECT_TRUE(made.compiled) << made.log;
    }
  }
}

// Each operator against a composition of LibTorch's in float64, forwards and backwards.
class FusedOperators : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (const auto* why = std::get_if<std::string>(&cuda_driver::load())) GTEST_SKIP() << *why;
    prepare_policy_device("cuda");
    at::manual_seed(1);
  }
  at::Tensor random(at::IntArrayRef shape) const {
    return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kFloat)).to(GetParam());
  }
  static at::Tensor leaf(const at::Tensor& t) { return t.detach().clone().requires_grad_(); }
  static at::Tensor exact(const at::Tensor& t) { return leaf(t.to(at::kDouble)); }
  void expect_close(const at::Tensor& given, const at::Tensor& expected) const {
    ASSERT_TRUE(given.defined() && expected.defined());
    const double tolerance = GetParam() == at::kFloat  ? 2e-5
                             : GetParam() == at::kHalf ? 2e-3
                                                       : 2e-2;
    const at::Tensor error = (given.to(at::kDouble) - expected).abs();
    const at::Tensor allowed = (expected.abs() + expected.abs().max() * 0.05) * tolerance;
    EXPECT_TRUE((error <= allowed).all().item<bool>())
        << "largest error " << error.max().item<double>() << " of values up to "
        << expected.abs().max().item<double>();
  }
};

TEST_P(FusedOperators, Rotate) {
  const at::Tensor x = random({37, 5, 96});
  const at::Tensor angles = at::rand({64, 48}, x.options().dtype(at::kFloat)) * 6.28;
  const at::Tensor turns = at::stack({angles.cos(), angles.sin()}, -1).contiguous();
  const at::Tensor positions = at::randint(64, {37}, x.options().dtype(at::kInt));
  const at::Tensor weight = random({37, 5, 96});
  const at::Tensor mine = leaf(x);
  const at::Tensor y = fused_rotate(mine, turns, positions);
  (y * weight).sum().backward();
  const at::Tensor other = exact(x);
  const at::Tensor its =
      angles.to(at::kDouble).index_select(0, positions.to(at::kLong)).unsqueeze(1);
  const auto halves = other.chunk(2, -1);
  const at::Tensor expected = at::cat({halves[0] * its.cos() - halves[1] * its.sin(),
                                       halves[1] * its.cos() + halves[0] * its.sin()},
                                      -1);
  (expected * weight.to(at::kDouble)).sum().backward();
  expect_close(y, expected);
  expect_close(mine.grad(), other.grad());
}

TEST_P(FusedOperators, Split) {
  const at::Tensor qkv = random({37, (5 + 2 * 2) * 64});
  const at::Tensor angles = at::rand({64, 32}, qkv.options().dtype(at::kFloat)) * 6.28;
  const at::Tensor turns = at::stack({angles.cos(), angles.sin()}, -1).contiguous();
  const at::Tensor positions = at::randint(64, {37}, qkv.options().dtype(at::kInt));
  const at::Tensor weight = random({37, 9, 64});
  const at::Tensor mine = leaf(qkv);
  const auto [q, k, v] = fused_split(mine, turns, positions, 5, 2);
  const at::Tensor together = at::cat({q, k, v}, 1);
  (together * weight).sum().backward();
  const at::Tensor other = leaf(qkv);
  const auto parts = other.view({37, 9, 64}).split_with_sizes({5, 2, 2}, 1);
  const at::Tensor expected =
      at::cat({fused_rotate(parts[0].contiguous(), turns, positions),
               fused_rotate(parts[1].contiguous(), turns, positions), parts[2]},
              1);
  (expected * weight).sum().backward();
  EXPECT_TRUE(at::equal(together, expected));
  EXPECT_TRUE(at::equal(mine.grad(), other.grad()));
}

TEST_P(FusedOperators, Gate) {
  const at::Tensor gate_up = random({123, 80}) * 3;
  const at::Tensor weight = random({123, 40});
  const at::Tensor mine = leaf(gate_up);
  const at::Tensor y = fused_gate(mine);
  (y * weight).sum().backward();
  const at::Tensor other = exact(gate_up);
  const auto halves = other.chunk(2, -1);
  const at::Tensor expected = at::silu(halves[0]) * halves[1];
  (expected * weight.to(at::kDouble)).sum().backward();
  expect_close(y, expected);
  expect_close(mine.grad(), other.grad());
}

TEST_P(FusedOperators, AddAndNorm) {
  // With this many rows some teams have two and some have one.
  for (const std::int64_t width : {64, 576, 768, 776, 1024, 1032, 3584, 4096}) {
    const at::Tensor x = random({3301, width});
    const at::Tensor change = random({3301, width});
    const at::Tensor weight = random({width});
    const at::Tensor by_y = random({3301, width});
    const at::Tensor by_h = random({3301, width});
    const at::Tensor a = leaf(x);
    const at::Tensor b = leaf(change);
    const at::Tensor w = leaf(weight);
    const auto [y, h] = fused_add_and_norm(a, b, w, 1e-5);
    (y * by_y + h * by_h).sum().backward();
    // The sum is rounded in both, as it is stored.
    const at::Tensor sum = exact((x + change).detach());
    const at::Tensor v = exact(weight);
    const at::Tensor expected = at::rms_norm(sum, {width}, v, 1e-5);
    (sum * by_y + expected * by_h).sum().backward();
    expect_close(y, sum);
    expect_close(h, expected);
    expect_close(a.grad(), sum.grad());
    expect_close(b.grad(), sum.grad());
    expect_close(w.grad(), v.grad());
  }
}

TEST_P(FusedOperators, TokenNumbers) {
  for (const double temperature : {1.0, 0.7}) {
    const at::Tensor logits = random({50, 5000}) * 4;
    const at::Tensor targets = at::randint(5000, {50}, logits.options().dtype(at::kLong));
    const at::Tensor by = at::randn({50}, logits.options().dtype(at::kFloat));
    const at::Tensor by_entropy = at::randn({50}, logits.options().dtype(at::kFloat));
    const at::Tensor mine = leaf(logits);
    const at::Tensor unscaled = mine * 1;  // the gradients overwrite the argument
    const auto [log_probabilities, entropies] = fused_token_numbers(unscaled, targets, temperature);
    const at::Tensor kept = log_probabilities.detach().clone();
    (log_probabilities * by + entropies * by_entropy).sum().backward();
    const at::Tensor other = exact(logits);
    const at::Tensor expected =
        at::log_softmax(other / temperature, -1).gather(1, targets.unsqueeze(1)).squeeze(1);
    const at::Tensor all = at::log_softmax(other, -1);
    const at::Tensor expected_entropies = -(all.exp() * all).sum(-1);
    (expected * by + expected_entropies * by_entropy).sum().backward();
    EXPECT_LT((kept - expected).abs().max().item<double>(), 1e-4);
    EXPECT_LT((entropies - expected_entropies).abs().max().item<double>(), 1e-4);
    expect_close(mine.grad(), other.grad());
  }
}

TEST_P(FusedOperators, Adamw) {
  adamw_numbers n;
  n.max_norm = 2;
  n.beta2 = 0.95;
  n.correction1 = 0.1;
  n.correction2 = 0.05;
  n.decay = 0.99;
  n.rate = 1e-2;
  const at::Tensor gradient = random({1001});
  at::Tensor exact_weight = at::randn({1001}, gradient.options().dtype(at::kFloat));
  at::Tensor mean = at::randn({1001}, exact_weight.options());
  at::Tensor square = at::rand({1001}, exact_weight.options());
  at::Tensor weight = GetParam() == at::kFloat ? exact_weight : exact_weight.to(GetParam());
  const at::Tensor g = gradient.to(at::kDouble) * 0.5;  // as the norm is 4
  const at::Tensor m = mean.to(at::kDouble) * n.beta1 + g * (1 - n.beta1);
  const at::Tensor s = square.to(at::kDouble) * n.beta2 + g * g * (1 - n.beta2);
  const at::Tensor expected =
      exact_weight.to(at::kDouble) * n.decay -
      n.rate * (m / n.correction1) / ((s / n.correction2).sqrt() + n.epsilon);
  const auto norm = [&](double of) { return at::full({}, of, exact_weight.options()); };
  const at::Tensor before = exact_weight.clone();
  fused_adamw(gradient, exact_weight, weight, mean, square, norm(std::nan("")), n);
  EXPECT_TRUE(at::equal(exact_weight, before));
  fused_adamw(gradient, exact_weight, weight, mean, square, norm(4), n);
  EXPECT_TRUE(at::allclose(exact_weight.to(at::kDouble), expected, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(mean.to(at::kDouble), m, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(square.to(at::kDouble), s, 1e-4, 1e-6));
  EXPECT_TRUE(at::equal(weight, exact_weight.to(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Types, FusedOperators,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

// A whole network on the GPU, with packed sequences, against the CPU's in float32.
TEST(FusedDecoder, ComputesTheGradientsOfTheOtherOperators) {
  if (const auto* why = std::get_if<std::string>(&cuda_driver::load())) GTEST_SKIP() << *why;
  prepare_policy_device("cuda");
  decoder_config c;
  c.vocabulary = 304;
  c.width = 96;
  c.layers = 2;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_width = 32;
  c.feed_forward = 160;
  c.context = 128;
  c.tied_head = true;
  c.initializer_range = 0.1;
  const decoder network(c);
  const std::vector<std::int64_t> lengths = {17, 64, 1, 64};
  const at::Tensor tokens = at::randint(304, {146}, at::kLong);
  const at::Tensor rows = at::arange(0, 146, 3);
  const auto gradients = [&](const std::string& device, const std::string& dtype) {
    decoder_weights weights = decoder_weights::random(c, 9).to(device, dtype);
    for (auto& [name, tensor] : weights.all()) tensor = tensor.detach().clone().requires_grad_();
    const auto on = [&](const at::Tensor& t) { return t.to(c10::Device(device)); };
    const at::Tensor hidden = network.hidden_at(weights, on(tokens), lengths, on(rows));
    at::log_softmax(network.head(weights, hidden), -1).select(1, 7).sum().backward();
    std::map<std::string, at::Tensor> all;
    for (const auto& [name, tensor] : weights.all())
      all[name] = tensor.grad().to(at::kCPU, at::kFloat);
    return all;
  };
  const auto expected = gradients("cpu", "float32");
  for (const auto& [dtype, tolerance] :
       {std::pair("float32", 1e-3), std::pair("bfloat16", 0.05), std::pair("float16", 0.01)}) {
    for (const auto& [name, its] : gradients("cuda", dtype)) {
      const at::Tensor& other = expected.at(name);
      EXPECT_LT((its - other).norm().item<double>(), tolerance * other.norm().item<double>())
          << name << " in " << dtype;
    }
  }
}

}  // namespace
}  // namespace hone
