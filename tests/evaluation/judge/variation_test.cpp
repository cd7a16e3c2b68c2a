#include "evaluation/judge/variation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace hone {
namespace {

task task_with(const std::string& tensors) {
  return parse_task(
      "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    "
      "return x\n'''\n" +
          tensors + "[[case]]\nsizes = { N = 40, M = 60 }\ntimed = true\n",
      "t.toml");
}

const std::string one_input = "[[input]]\nname = \"x\"\nshape = [\"N\", \"M\"]\n";
const std::string another_input = "[[input]]\nname = \"z\"\nshape = [\"N\", \"M\"]\n";

std::string parameter(const std::string& keys) {
  return "[[parameter]]\nname = \"w\"\nshape = [\"N\", \"M\"]\n" + keys + "\n";
}

// Returns the contents of a tensor of ones that a variation changes; empty if there is none.
std::vector<double> varied(const task& t, std::size_t tensor, distribution how, std::uint64_t seed,
                           double before = 1) {
  const auto change = variation_of(t, tensor, t.cases[0], how, seed);
  if (!change) return {};
  tensor_value value = from_doubles(std::vector<double>(2400, before), {dtype::float32, {40, 60}});
  vary(value, *change);
  return to_doubles(value);
}

TEST(Variation, ScalesWholeSlicesOfADimensionByPowersOfTwo) {
  const task t = task_with(one_input);
  bool by_rows = false;
  bool by_columns = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<double> x = varied(t, 0, distribution::mixed, seed);
    std::set<double> factors(x.begin(), x.end());
    for (const double factor : factors) {
      EXPECT_EQ(std::log2(factor), std::round(std::log2(factor)));
      EXPECT_LE(std::abs(std::log2(factor)), 6);
    }
    bool rows_are_uniform = true;
    bool columns_are_uniform = true;
    for (std::size_t r = 0; r < 40; ++r) {
      for (std::size_t c = 0; c < 60; ++c) {
        rows_are_uniform = rows_are_uniform && x[r * 60 + c] == x[r * 60];
        columns_are_uniform = columns_are_uniform && x[r * 60 + c] == x[c];
      }
    }
    EXPECT_TRUE(rows_are_uniform || columns_are_uniform);
    by_rows = by_rows || (rows_are_uniform && !columns_are_uniform);
    by_columns = by_columns || (columns_are_uniform && !rows_are_uniform);
  }
  EXPECT_TRUE(by_rows);
  EXPECT_TRUE(by_columns);
}

TEST(Variation, LeavesFewSlicesOfARandomDimensionOfOneInput) {
  const task t = task_with(one_input + another_input);
  std::set<std::size_t> counts;
  std::map<std::size_t, int> victims;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::size_t changed = 0;
    for (std::size_t tensor = 0; tensor < 2; ++tensor) {
      const std::vector<double> x = varied(t, tensor, distribution::sparse, seed);
      if (x.empty()) continue;
      ++changed;
      ++victims[tensor];
      const auto kept = static_cast<std::size_t>(std::count(x.begin(), x.end(), 1.0));
      EXPECT_GE(kept, 40U) << "one slice at least";
      EXPECT_LE(kept, 2400U / 2);
      EXPECT_EQ(static_cast<std::size_t>(std::count(x.begin(), x.end(), 0.0)), 2400 - kept);
      counts.insert(kept);
    }
    EXPECT_EQ(changed, 1U);
  }
  EXPECT_GT(victims[0], 25);
  EXPECT_GT(victims[1], 25);
  EXPECT_GT(counts.size(), 6U);
}

TEST(Variation, KeepsSlicesWithoutInformationWithinTheDeclaredRange) {
  const task t = task_with(one_input + "init = \"uniform(0.5,2)\"\n");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const double x : varied(t, 0, distribution::sparse, seed)) EXPECT_GE(x, 0.5);
    for (const double x : varied(t, 0, distribution::mixed, seed)) EXPECT_LE(x, 1);
  }
}

TEST(Variation, ChangesParametersWithWeightsAlone) {
  const task t = task_with(one_input + parameter("init = \"normal(0,0.02)\""));
  for (const distribution how : {distribution::shifted, distribution::mixed, distribution::sparse})
    EXPECT_TRUE(varied(t, 1, how, 1).empty()) << name_of(how);
  std::set<std::vector<double>> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(varied(t, 0, distribution::weights, seed).empty());
    seen.insert(varied(t, 1, distribution::weights, seed));
  }
  EXPECT_GT(seen.size(), 15U);
}

TEST(Variation, DrawsConstantsNearAndFarFromTheirValueWithItsSign) {
  const task t = task_with(one_input + parameter("init = \"constant(-3)\""));
  bool near = false;
  bool far = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    double largest = 0;
    for (const double x : varied(t, 1, distribution::weights, seed, -3)) {
      EXPECT_LT(x, 0);
      largest = std::max(largest, std::abs(x + 3));
    }
    near = near || (largest > 0 && largest < 0.1);
    far = far || largest > 1;
  }
  EXPECT_TRUE(near);
  EXPECT_TRUE(far);
}

// Returns the numbers of elements that differ from `constant` for forty seeds.
std::vector<std::ptrdiff_t> changed_elements(const task& t, double constant) {
  std::vector<std::ptrdiff_t> counts;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<double> x = varied(t, 1, distribution::weights, seed, constant);
    counts.push_back(std::count_if(x.begin(), x.end(), [&](double v) { return v != constant; }));
  }
  return counts;
}

TEST(Variation, ChangesOneElementOfAConstantOrAFewSlicesOrAll) {
  for (const double constant : {0.0, 1.0}) {
    const task t =
        task_with(one_input + parameter("init = \"constant(" + std::to_string(constant) + ")\""));
    const auto counts = changed_elements(t, constant);
    const auto with = [&](std::ptrdiff_t least, std::ptrdiff_t most) {
      return std::count_if(counts.begin(), counts.end(),
                           [&](auto n) { return n >= least && n <= most; });
    };
    EXPECT_EQ(with(0, 0), 0);
    EXPECT_GT(with(1, 1), 8);
    EXPECT_GT(with(2, 2000), 2);
    // A verification draws an even and an odd seed.
    for (std::size_t seed = 0; seed < counts.size(); ++seed)
      EXPECT_EQ(counts[seed] > 2300, seed % 2 == 0) << seed;
  }
}

TEST(Variation, KeepsIntegerConstantsBetweenZeroAndTheirValue) {
  const task t = task_with(one_input + parameter("dtype = \"int64\"\ninit = \"constant(5)\""));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const double x : varied(t, 1, distribution::weights, seed, 5)) {
      EXPECT_GE(x, 0);
      EXPECT_LE(x, 5);
      EXPECT_EQ(x, std::round(x));
    }
  }
}

TEST(Variation, KeepsVariancesPositive) {
  const task t = task_with(one_input + parameter("init = \"uniform(0.5,1.5)\""));
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const double x : varied(t, 1, distribution::weights, seed)) EXPECT_GT(x, 0);
  }
}

TEST(Variation, LeavesFixedTensorsAsTheyAre) {
  const task t = task_with(one_input + parameter("fixed = true\ninit = \"constant(1)\""));
  EXPECT_TRUE(varied(t, 1, distribution::weights, 1).empty());
  EXPECT_FALSE(changes_any(t, distribution::weights));
  EXPECT_TRUE(changes_any(t, distribution::mixed));
}

TEST(Variation, MovesAndScalesTheRowsOfDataFiles) {
  variation v{};
  v.seed = 5;
  v.extent = 7;
  v.block = 3;
  v.kept = 2;
  std::vector<double> rows;
  for (int r = 0; r < 7; ++r) rows.insert(rows.end(), {r + 1.0, 10.0 * (r + 1)});
  tensor_value value = from_doubles(rows, {dtype::float64, {7, 2}});
  vary_data(value, v);
  const std::vector<double> after = to_doubles(value);
  std::set<long> sources;
  for (std::size_t r = 0; r < 7; ++r) {
    EXPECT_NEAR(after[2 * r + 1] / after[2 * r], 10, 1e-9) << "a row stays together";
    const double factor = after[2 * r] / (static_cast<double>(source_row(v, r)) + 1);
    EXPECT_GE(factor, 0.5);
    EXPECT_LE(factor, 2);
    sources.insert(static_cast<long>(source_row(v, r)));
  }
  EXPECT_EQ(sources.size(), 7U);
}

}  // namespace
}  // namespace hone
