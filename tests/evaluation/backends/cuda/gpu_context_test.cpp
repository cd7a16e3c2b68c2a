// Tests the judge's own kernels on a GPU against the same computations on the host.

#include "evaluation/backends/cuda/gpu_context.hpp"
#include "evaluation/backends/cuda/own_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/variation.hpp"
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

tensor_value downloaded(CUdeviceptr at, const tensor_layout& layout) {
  tensor_value value{layout, std::vector<std::byte>(layout.bytes())};
  gpu().download(value.bytes.data(), at, value.bytes.size());
  return value;
}

gpu_memory uploaded(const tensor_value& value) {
  gpu_memory memory = gpu().allocate(value.bytes.size());
  gpu().upload(memory.at(), value.bytes.data(), value.bytes.size());
  return memory;
}

std::vector<double> drawn(gpu_drawing d, std::uint64_t perturbation = 0) {
  const tensor_layout layout{static_cast<dtype>(d.type), {static_cast<std::int64_t>(d.n)}};
  const gpu_memory memory = gpu().allocate(layout.bytes());
  gpu().draw(memory.at(), d);
  if (perturbation != 0) gpu().perturb(memory.at(), d, perturbation, 3);
  return to_doubles(downloaded(memory.at(), layout));
}

gpu_drawing drawing(initializer::kind of, dtype type, std::uint64_t n, double a, double b) {
  gpu_drawing d;
  d.seed = 12345;
  d.n = n;
  d.a = a;
  d.b = b;
  d.row = n;
  d.type = static_cast<int>(type);
  d.of = static_cast<int>(of);
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
  auto d = drawing(initializer::kind::normal, dtype::bfloat16, 10007, 0, 1);
  const auto once = drawn(d);
  EXPECT_EQ(once, drawn(d));
  const auto perturbed = drawn(d, 99);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < once.size(); ++i) changed += once[i] != perturbed[i] ? 1 : 0;
  EXPECT_GE(changed, 1U);
  EXPECT_LE(changed, 3U);
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

// Every distribution changes the same elements to the same numbers on the host and on the GPU.
TEST(GpuContext, VariesLikeTheHost) {
  HONE_NEEDS_A_GPU();
  const task t = parse_task(
      "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    "
      "return x\n'''\n"
      "[[input]]\nname = \"x\"\nshape = [50, 60, 7]\n"
      "[[input]]\nname = \"i\"\nshape = [50, 60]\ndtype = \"int64\"\ninit = \"integers(-9,40)\"\n"
      "[[input]]\nname = \"b\"\nshape = [50, 60]\ndtype = \"bool\"\n"
      "[[input]]\nname = \"e\"\nshape = [50, 60]\ninit = { of = \"normal\", expr = \"x * 2\" }\n"
      "[[parameter]]\nname = \"w\"\nshape = [50, 60]\n"
      "[[parameter]]\nname = \"c\"\nshape = [3000]\ninit = \"constant(2)\"\n"
      "[[case]]\ntimed = true\n",
      "t.toml");
  std::map<distribution, int> changed;
  for (const distribution how :
       {distribution::shifted, distribution::small, distribution::outliers, distribution::one_high,
        distribution::one_low, distribution::large, distribution::mixed, distribution::sparse,
        distribution::weights}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      for (std::size_t tensor = 0; tensor < 6; ++tensor) {
        const auto change = variation_of(t, tensor, t.cases[0], how, seed);
        if (!change) continue;
        const tensor_spec& spec = tensor < 4 ? t.inputs[tensor] : t.parameters[tensor - 4];
        const auto n = static_cast<std::uint64_t>(element_count(resolve_shape(spec, t.cases[0])));
        const dtype raw = spec.type == dtype::int64 ? dtype::int64 : dtype::float32;
        gpu_drawing d = drawing(spec.init.of, raw, n, -9, 40);
        if (spec.init.of != initializer::kind::integers) d.a = 2, d.b = 3;
        const tensor_layout layout{raw, {static_cast<std::int64_t>(n)}};
        const gpu_memory memory = gpu().allocate(layout.bytes());
        gpu().draw(memory.at(), d);
        tensor_value value = downloaded(memory.at(), layout);
        const tensor_value before = value;
        vary(value, *change);
        gpu().vary(memory.at(), raw, *change);
        EXPECT_EQ(to_doubles(value), to_doubles(downloaded(memory.at(), layout)))
            << name_of(how) << " contents of " << spec.name << ", seed " << seed;
        changed[how] += value.bytes != before.bytes ? 1 : 0;
      }
    }
  }
  for (const auto& [how, count] : changed) EXPECT_GT(count, 0) << name_of(how);
  EXPECT_EQ(changed.size(), 9U);
}

// Expects the same result from comparing tensors on the host and on the GPU.
void expect_same_agreement(const std::vector<double>& actual, const expected_outputs& expected,
                           tolerance allowed) {
  const dtype type = expected.own[0].layout.type;
  const tensor_value a = from_doubles(actual, expected.own[0].layout);
  const agreement host = compare_output(a, expected, 0, allowed);
  std::vector<gpu_memory> memory;
  const auto place = [&](const value_set& run) {
    memory.push_back(uploaded(run[0]));
    return memory.back().at();
  };
  gpu_runs runs;
  runs.own = place(expected.own);
  if (expected.wide) runs.wide = place(*expected.wide);
  if (expected.settled) runs.settled = place(*expected.settled);
  for (const value_set& run : expected.noisy) runs.noisy.push_back(place(run));
  for (const value_set& run : expected.alternatives) runs.alternatives.push_back(place(run));
  const output_errors errors =
      gpu().measure_floating(place({a}), runs, type, a.layout.elements(), allowed, 0);
  const auto numbers = to_doubles(a);
  const auto right = to_doubles(expected.own[0]);
  const agreement device = conclude(errors, a.layout, [&](std::size_t i) {
    return element_text{numbers[i], right[i], false};
  });
  EXPECT_EQ(host.problem.has_value(), device.problem.has_value())
      << host.problem.value_or("") << " / " << device.problem.value_or("");
  if (host.worst_element < 1e299) {
    EXPECT_NEAR(host.worst_element, device.worst_element, 1e-6 + 1e-6 * host.worst_element);
    EXPECT_NEAR(host.rms, device.rms, 1e-9 + 1e-6 * host.rms);
    // The host does not measure an output whose bytes are the expected ones.
    if (host.allowed_share > 0) {
      EXPECT_NEAR(host.allowed_share, device.allowed_share, 1e-6 * host.allowed_share);
    }
  }
}

TEST(GpuContext, ComparesLikeTheHost) {
  HONE_NEEDS_A_GPU();
  const std::int64_t n = 5003;
  std::vector<double> right;
  for (std::int64_t i = 0; i < n; ++i) right.push_back(std::sin(static_cast<double>(i)) * 3);
  for (const dtype type : {dtype::float32, dtype::float16, dtype::bfloat16, dtype::float64}) {
    const double unit = limits_of(type).unit;
    const auto in_type = [&](const std::vector<double>& x) {
      return value_set{from_doubles(x, {type, {n}})};
    };
    const auto changed = [&](std::uint64_t seed, double by) {
      random_stream random(seed);
      std::vector<double> x = right;
      for (double& number : x)
        number += by * unit * static_cast<double>(random.uniform() - 0.5F) * std::abs(number);
      return x;
    };
    expected_outputs expected;
    expected.own = in_type(right);
    const std::vector<std::vector<double>> all_actual = [&] {
      std::vector<std::vector<double>> some = {right, changed(9, 4), changed(9, 40),
                                               changed(9, 400),
                                               std::vector<double>(right.size(), 0.0)};
      some.push_back(right);
      some.back()[4321] += 0.5;
      some.push_back(right);
      some.back()[17] = std::numeric_limits<double>::quiet_NaN();
      some.push_back(right);
      some.back()[5] = std::numeric_limits<double>::infinity();
      return some;
    }();
    const auto compare_all_with = [&](const expected_outputs& with) {
      for (const std::vector<double>& actual : all_actual) {
        for (const double allowed : {1e-9, 0.5})
          expect_same_agreement(actual, with, {allowed, 0.1});
      }
    };
    compare_all_with(expected);
    for (const std::uint64_t seed : {1, 2, 3}) expected.noisy.push_back(in_type(changed(seed, 30)));
    compare_all_with(expected);
    expected.wide = value_set{from_doubles(changed(4, 20), {dtype::float64, {n}})};
    compare_all_with(expected);
    expected.settled = expected.wide;
    for (const double by : {0.5, 1.0, 7.0}) {
      std::vector<double> other = right;
      for (std::size_t i = 4300; i < 4400; ++i) other[i] += by;
      expected.alternatives.push_back(in_type(other));
    }
    compare_all_with(expected);
    std::vector<double> infinite = right;
    infinite[5] = std::numeric_limits<double>::infinity();
    expected.wide = value_set{from_doubles(infinite, {dtype::float64, {n}})};
    compare_all_with(expected);
  }
}

TEST(GpuContext, PermutesAndScalesDataLikeTheHost) {
  HONE_NEEDS_A_GPU();
  std::vector<double> rows(40 * 16);
  std::iota(rows.begin(), rows.end(), 1.0);
  std::vector<std::byte> bytes = from_doubles(rows, {dtype::float32, {40, 16}}).bytes;
  task t;
  tensor_spec spec;
  spec.name = "table";
  spec.shape = {std::int64_t{40}, std::int64_t{16}};
  spec.data_file = "t.safetensors";
  t.inputs.emplace_back();
  t.inputs.back().name = "x";
  t.parameters.push_back(spec);
  t.cases.resize(1);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto change = variation_of(t, 1, t.cases[0], distribution::weights, seed);
    ASSERT_TRUE(change);
    tensor_value value = from_doubles(rows, {dtype::float32, {40, 16}});
    const gpu_memory from = uploaded(value);
    const gpu_memory to = gpu().allocate(value.bytes.size());
    gpu().vary_data(to.at(), from.at(), dtype::float32, rows.size(), *change);
    vary_data(value, *change);
    EXPECT_EQ(to_doubles(value), to_doubles(downloaded(to.at(), value.layout))) << seed;
    EXPECT_NE(value.bytes, bytes) << seed;
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
