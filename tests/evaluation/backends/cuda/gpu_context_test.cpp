// Tests the judge's own kernels on a GPU against the same computations on the host.

#include "evaluation/backends/cuda/gpu_context.hpp"
#include "evaluation/backends/cuda/own_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "evaluation/judge/comparison.hpp"
#include "tests/support/gpu_bench.hpp"

namespace hone {
namespace {

using testing_support::gpu_bench;

gpu_context& gpu() {
  static gpu_context made(gpu_bench::instance().facts());
  static own_kernels kernels(gpu_bench::instance().facts().architecture);
  static gpu_context& loaded = made.load(kernels.blocks());
  return loaded;
}

std::vector<double> drawn(gpu_drawing d, std::uint64_t perturbation = 0) {
  tensor_value value{{static_cast<dtype>(d.type), {static_cast<std::int64_t>(d.n)}}, {}};
  value.bytes.resize(value.layout.bytes());
  const gpu_memory memory = gpu().allocate(value.bytes.size());
  gpu().draw(memory.at(), d);
  if (perturbation != 0) gpu().perturb(memory.at(), d, perturbation, 3);
  gpu().download(value.bytes.data(), memory.at(), value.bytes.size());
  return to_doubles(value);
}

gpu_drawing drawing(initializer::kind of, dtype type, std::uint64_t n, double a, double b,
                    distribution how = distribution::declared) {
  gpu_drawing d;
  d.seed = 12345;
  d.n = n;
  d.a = a;
  d.b = b;
  d.row = n;
  d.type = static_cast<int>(type);
  d.of = static_cast<int>(of);
  d.how = static_cast<int>(how);
  return d;
}

double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

TEST(GpuContext, DrawsWhatTheTaskDeclares) {
  HONE_NEEDS_A_GPU();
  const auto x = drawn(drawing(initializer::kind::normal, dtype::float32, 1000003, 3, 2));
  double squares = 0;
  for (const double v : x) squares += (v - 3) * (v - 3);
  EXPECT_NEAR(mean_of(x), 3, 0.01);  // five standard errors of the mean of a million
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(x.size())), 2, 0.01);
  const auto u = drawn(drawing(initializer::kind::uniform, dtype::float16, 100001, -1, 1));
  EXPECT_NEAR(mean_of(u), 0, 0.02);
  EXPECT_GE(*std::min_element(u.begin(), u.end()), -1);
  EXPECT_LE(*std::max_element(u.begin(), u.end()), 1);
  const auto i = drawn(drawing(initializer::kind::integers, dtype::int64, 50000, -5, 6));
  EXPECT_EQ(*std::min_element(i.begin(), i.end()), -5);
  EXPECT_EQ(*std::max_element(i.begin(), i.end()), 5);
  const auto coin = drawn(drawing(initializer::kind::coin, dtype::boolean, 100000, 0, 1));
  EXPECT_NEAR(mean_of(coin), 0.5, 0.01);
}

TEST(GpuContext, DrawsPermutationsWithEveryNumberOncePerRow) {
  HONE_NEEDS_A_GPU();
  for (const std::uint64_t row : {1ULL, 7ULL, 64ULL, 1000ULL}) {
    auto d = drawing(initializer::kind::permutation, dtype::int32, row * 3, 0, 1);
    d.row = row;
    const auto x = drawn(d);
    for (std::uint64_t r = 0; r < 3; ++r) {
      std::vector<double> sorted(x.begin() + static_cast<std::ptrdiff_t>(r * row),
                                 x.begin() + static_cast<std::ptrdiff_t>((r + 1) * row));
      std::sort(sorted.begin(), sorted.end());
      for (std::uint64_t i = 0; i < row; ++i) EXPECT_EQ(sorted[i], static_cast<double>(i));
    }
  }
}

TEST(GpuContext, DrawsEqualContentsForEqualSeeds) {
  HONE_NEEDS_A_GPU();
  auto d = drawing(initializer::kind::normal, dtype::bfloat16, 10007, 0, 1, distribution::outliers);
  const auto once = drawn(d);
  EXPECT_EQ(once, drawn(d));
  const auto perturbed = drawn(d, 99);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < once.size(); ++i) changed += once[i] != perturbed[i] ? 1 : 0;
  EXPECT_GE(changed, 1U);
  EXPECT_LE(changed, 3U);
  EXPECT_GE(std::count_if(once.begin(), once.end(), [](double x) { return std::abs(x) > 400; }), 1);
  d.seed = 54321;
  EXPECT_NE(once, drawn(d));
}

TEST(GpuContext, DrawsMoreTensorsThanOneLaunchTakesAsItDrawsOne) {
  HONE_NEEDS_A_GPU();
  const std::size_t count = 100;
  const std::uint64_t step = 1024;  // bytes
  const gpu_memory memory = gpu().allocate(count * step);
  gpu().fill(memory.at(), 0xff, memory.bytes());
  std::vector<gpu_placed_drawing> drawings;
  for (std::size_t i = 0; i < count; ++i) {
    auto d = drawing(i % 2 == 0 ? initializer::kind::normal : initializer::kind::constant,
                     dtype::float32, 37 * i % 250, 2, 3);
    d.tensor = static_cast<std::int32_t>(i);
    drawings.push_back({memory.at() + i * step, d});
  }
  gpu().draw_all(drawings);
  for (const auto& [at, d] : drawings) {
    tensor_value value{{dtype::float32, {static_cast<std::int64_t>(d.n)}}, {}};
    value.bytes.resize(value.layout.bytes());
    gpu().download(value.bytes.data(), at, value.bytes.size());
    EXPECT_EQ(to_doubles(value), drawn(d)) << "tensor " << d.tensor;
    unsigned char behind = 0;
    gpu().download(&behind, at + value.bytes.size(), 1);
    EXPECT_EQ(behind, 0xff) << "tensor " << d.tensor << " ends there";
  }
}

// Expects the same result from comparing tensors on the host and on the GPU.
void expect_same_agreement(const std::vector<double>& actual, const std::vector<double>& own,
                           const std::vector<double>& wide, dtype type) {
  const auto n = static_cast<std::int64_t>(actual.size());
  const tensor_value a = from_doubles(actual, {type, {n}});
  const tensor_value o = from_doubles(own, {type, {n}});
  const tensor_value w = from_doubles(wide, {dtype::float64, {n}});
  const tolerance allowed{1e-3, 1e-3};
  const agreement host = compare_output(a, o, &w, allowed);
  const auto on_gpu = [](const tensor_value& value) {
    gpu_memory memory = gpu().allocate(value.bytes.size());
    gpu().upload(memory.at(), value.bytes.data(), value.bytes.size());
    return memory;
  };
  const gpu_memory ga = on_gpu(a);
  const gpu_memory go = on_gpu(o);
  const gpu_memory gw = on_gpu(w);
  const output_errors errors =
      gpu().measure_floating(ga.at(), go.at(), gw.at(), type, a.layout.elements(), allowed);
  const auto numbers = to_doubles(a);
  const auto expected = to_doubles(convert_floating(w, type));
  const agreement device = conclude(errors, a.layout, allowed, [&](std::size_t i) {
    return element_text{numbers[i], expected[i], false};
  });
  EXPECT_EQ(host.problem.has_value(), device.problem.has_value())
      << host.problem.value_or("") << " / " << device.problem.value_or("");
  EXPECT_EQ(host.only_by_tolerance, device.only_by_tolerance);
  if (host.worst_element < 1e299) {
    EXPECT_NEAR(host.worst_element, device.worst_element, 1e-6 + 1e-6 * host.worst_element);
    EXPECT_NEAR(host.relative_l2, device.relative_l2, 1e-9 + 1e-6 * host.relative_l2);
  }
}

TEST(GpuContext, ComparesLikeTheHost) {
  HONE_NEEDS_A_GPU();
  for (const dtype type : {dtype::float32, dtype::float16, dtype::bfloat16, dtype::float64}) {
    std::vector<double> right(5003);
    for (std::size_t i = 0; i < right.size(); ++i) right[i] = std::sin(static_cast<double>(i)) * 3;
    const tensor_value rounded =
        from_doubles(right, {type, {static_cast<std::int64_t>(right.size())}});
    const std::vector<double> own = to_doubles(rounded);
    expect_same_agreement(own, own, right, type);
    auto wrong = own;
    wrong[4321] += 0.5;
    expect_same_agreement(wrong, own, right, type);
    auto holes = own;
    holes[17] = std::numeric_limits<double>::quiet_NaN();
    expect_same_agreement(holes, own, right, type);
    auto infinite = right;
    infinite[5] = std::numeric_limits<double>::infinity();
    auto infinite_own = own;
    infinite_own[5] = infinite[5];
    expect_same_agreement(infinite_own, infinite_own, infinite, type);
    expect_same_agreement(own, infinite_own, infinite, type);
    expect_same_agreement(std::vector<double>(right.size(), 0.0), own, right, type);
    auto tail = right;
    for (double& x : tail) x = std::exp(2 * x);
    const std::vector<double> own_tail =
        to_doubles(from_doubles(tail, {type, {static_cast<std::int64_t>(tail.size())}}));
    auto missed = own_tail;
    for (double& x : missed) x = x < 0.05 ? 0 : x;
    expect_same_agreement(missed, own_tail, tail, type);
    expect_same_agreement(missed, missed, tail, type);
  }
}

TEST(GpuContext, UnscramblesOnlyWithTheSameKey) {
  HONE_NEEDS_A_GPU();
  const std::uint64_t bytes = 100003;
  const gpu_memory a = gpu().allocate(bytes);
  const gpu_memory b = gpu().allocate(bytes);
  gpu().fill(a.at(), 0x11, bytes);
  gpu().fill(b.at(), 0x11, bytes);
  gpu().scramble(a.at(), bytes, 77);
  EXPECT_FALSE(gpu().equal(a.at(), b.at(), 16));
  EXPECT_FALSE(gpu().equal(a.at() + 99984, b.at() + 99984, 19));
  gpu().scramble(a.at(), bytes, 78);
  EXPECT_FALSE(gpu().equal(a.at(), b.at(), bytes));
  gpu().scramble(a.at(), bytes, 78);
  gpu().scramble(a.at(), bytes, 77);
  EXPECT_TRUE(gpu().equal(a.at(), b.at(), bytes));
}

TEST(GpuContext, FindsDifferencesAndDamageOfASingleByte) {
  HONE_NEEDS_A_GPU();
  const std::uint64_t bytes = 100003;
  const gpu_memory a = gpu().allocate(bytes);
  const gpu_memory b = gpu().allocate(bytes);
  gpu().fill(a.at(), 0xff, bytes);
  gpu().fill(b.at(), 0xff, bytes);
  EXPECT_TRUE(gpu().equal(a.at(), b.at(), bytes));
  EXPECT_FALSE(gpu().find_damage(a.at(), {{0, 100}, {5000, bytes}}));
  const unsigned char one = 0xfe;
  gpu().upload(a.at() + bytes - 1, &one, 1);
  EXPECT_FALSE(gpu().equal(a.at(), b.at(), bytes));
  EXPECT_TRUE(gpu().equal(a.at(), b.at(), bytes - 1));
  EXPECT_EQ(gpu().find_damage(a.at(), {{0, 100}, {5000, bytes}}), std::optional<std::size_t>(1));
  EXPECT_EQ(gpu().find_damage(a.at(), {{0, 100, other_poison_byte}}), std::optional<std::size_t>(0))
      << "the other poison is damage as well";
}

TEST(GpuContext, CopiesAndComparesMoreRangesThanOneLaunchTakes) {
  HONE_NEEDS_A_GPU();
  const std::uint64_t step = 4096;
  const std::size_t count = 300;
  const gpu_memory a = gpu().allocate(count * step);
  const gpu_memory b = gpu().allocate(count * step);
  std::vector<unsigned char> from(count * step);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 >> 3U);
  gpu().fill(a.at(), 0xff, a.bytes());
  gpu().upload(b.at(), from.data(), from.size());
  std::vector<gpu_context::range_pair> pairs;
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back({a.at() + i * step, b.at() + i * step, i % 7 == 0 ? 0 : 13 * i % 4001});
  gpu().copy_all(pairs);
  EXPECT_TRUE(gpu().all_equal(pairs));
  std::vector<unsigned char> to(from.size());
  gpu().download(to.data(), a.at(), to.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = pairs[i].bytes;
    EXPECT_EQ(std::memcmp(&to[i * step], &from[i * step], bytes), 0) << i;
    EXPECT_EQ(to[i * step + bytes], 0xff) << "range " << i << " ends there";
  }
  for (const std::size_t i : {1, 299}) {
    const std::uint64_t last = i * step + pairs[i].bytes - 1;
    const unsigned char other = from[last] ^ 1U;
    gpu().upload(a.at() + last, &other, 1);
    EXPECT_FALSE(gpu().all_equal(pairs)) << "range " << i << " differs in a byte";
    gpu().upload(a.at() + last, &from[last], 1);
    EXPECT_TRUE(gpu().all_equal(pairs));
  }
}

TEST(GpuContext, GathersStridedTensorsRowMajor) {
  HONE_NEEDS_A_GPU();
  std::vector<float> numbers(60);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const gpu_memory from = gpu().allocate(numbers.size() * 4);
  gpu().upload(from.at(), numbers.data(), numbers.size() * 4);
  const tensor_layout layout{dtype::float32, {3, 4, 5}};
  const gpu_memory to = gpu().allocate(layout.bytes());
  gpu().gather(to.at(), from.at(), layout, {1, 15, 3});
  std::vector<float> out(60);
  gpu().download(out.data(), to.at(), layout.bytes());
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 5; ++k)
        EXPECT_EQ(out[static_cast<std::size_t>(i * 20 + j * 5 + k)],
                  static_cast<float>(i + 15 * j + 3 * k));
    }
  }
}

}  // namespace
}  // namespace hone
