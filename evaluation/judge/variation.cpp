#include "evaluation/judge/variation.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "evaluation/judge/inputs.hpp"

namespace hone {
namespace {

using namespace judging;

using kind = initializer::kind;

constexpr double input_outlier = 500;
constexpr double single_outlier = 20000;  // exponentials of an eighth of it overflow
constexpr double raw_outlier = 8;  // of numbers that an `expr` takes, in units of their spread
// Slices that `sparse` keeps: at most one in so many, and so many in all.
constexpr std::uint64_t sparsest = 8;
constexpr std::uint64_t max_kept = 64;
constexpr int widest_scale = 6;         // exponents of two, of inputs
constexpr int widest_weight_scale = 3;  // of parameters, and of numbers that an `expr` takes

static_assert(static_cast<int>(kind::normal) == vary_normal);
static_assert(static_cast<int>(kind::uniform) == vary_uniform);
static_assert(static_cast<int>(kind::integers) == vary_integers);
static_assert(static_cast<int>(kind::constant) == vary_constant);
static_assert(static_cast<int>(kind::coin) == vary_coin);
static_assert(static_cast<int>(distribution::one_low) == way_one_low);
static_assert(static_cast<int>(distribution::large) == way_large);
static_assert(static_cast<int>(distribution::mixed) == way_mixed);
static_assert(static_cast<int>(distribution::sparse) == way_sparse);

bool is_data(const tensor_spec& spec) { return !spec.data_file.empty(); }

// Draws the dimension whose slices differ, and how.
void choose_slices(variation& v, const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1) dimensions.push_back(d);
  }
  if (dimensions.empty()) return;
  const std::size_t d = dimensions[hashed(v.seed, 0, 11) % dimensions.size()];
  v.extent = static_cast<random_word>(shape[d]);
  for (std::size_t below = d + 1; below < shape.size(); ++below)
    v.stride *= static_cast<random_word>(shape[below]);
  constexpr std::array<random_word, 4> blocks = {1, 4, 16, 64};
  v.block = std::min(blocks[hashed(v.seed, 0, 12) % blocks.size()],
                     std::max<random_word>(1, v.extent / 2));
  // As few as one slice and as many as an eighth, all powers of two equally likely.
  const random_word most =
      std::min<random_word>(max_kept, std::max<random_word>(1, v.extent / sparsest));
  int powers = 1;
  while ((random_word{1} << static_cast<unsigned>(powers)) <= most) ++powers;
  v.kept = random_word{1} << (hashed(v.seed, 0, 13) % static_cast<random_word>(powers));
}

// Where zero is no ordinary value of a tensor, slices that carry nothing hold an ordinary one.
double quiet_value(const tensor_spec& spec, double a, double b) {
  if (spec.init.of == kind::uniform) return std::clamp(0.0, std::min(a, b), std::max(a, b));
  constexpr double far = 3;  // standard deviations
  return std::abs(a) > far * std::abs(b) ? a : 0;
}

void choose_rows(variation& v, const std::vector<std::int64_t>& shape) {
  v.extent = shape.size() > 1 ? static_cast<random_word>(std::max<std::int64_t>(1, shape[0])) : 1;
  v.block = v.extent > 1 ? hashed(v.seed, 0, 14) % v.extent : 1;
  while (std::gcd(v.block, v.extent) != 1) v.block = (v.block + 1) % v.extent;
  v.kept = hashed(v.seed, 0, 15) % v.extent;
}

std::vector<std::size_t> varying_inputs(const task& t) {
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < t.inputs.size(); ++i) {
    if (!is_always_declared(t.inputs[i])) able.push_back(i);
  }
  return able;
}

// Returns the distribution of one tensor.
distribution of_tensor(const task& t, std::size_t tensor, distribution how, std::uint64_t seed) {
  const bool is_input = tensor < t.inputs.size();
  if (how == distribution::weights) {
    if (is_input) return distribution::declared;
    constexpr std::array<distribution, 4> ways = {distribution::mixed, distribution::sparse,
                                                  distribution::one_high, distribution::one_low};
    // Of constants, all elements change for even seeds, so that none can be left out, and for odd
    // ones a few, so that none can stand for the others.
    const bool is_constant = tensor_of(t, tensor).init.of == kind::constant;
    if (is_constant && seed % 2 == 0) return distribution::mixed;
    const std::size_t first = is_constant ? 1 : 0;
    return ways[first + hashed(seed, tensor, 16) % (ways.size() - first)];
  }
  if (!is_input) return distribution::declared;
  if (!changes_one_input(how)) return how;
  const std::vector<std::size_t> able = varying_inputs(t);
  return !able.empty() && able[seed % able.size()] == tensor ? how : distribution::declared;
}

template <class T, class Change>
void change_all(tensor_value& value, const Change& change) {
  const std::span<T> numbers = numbers_of<T>(value);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<T>(change(numbers[i], static_cast<random_word>(i)));
}

}  // namespace

bool is_always_declared(const tensor_spec& spec) {
  if (spec.is_fixed || spec.init.of == kind::permutation) return true;
  return is_data(spec) && !is_floating(spec.type) && spec.shape.size() < 2;
}

bool changes_one_input(distribution how) {
  return how == distribution::sparse || how == distribution::outliers ||
         how == distribution::one_high || how == distribution::one_low;
}

std::size_t turns_of(const task& t, distribution how) {
  return changes_one_input(how) ? std::max<std::size_t>(1, varying_inputs(t).size()) : 1;
}

std::uint64_t seed_of_turn(std::uint64_t bits, std::size_t turn, std::size_t turns) {
  const std::uint64_t half = bits / 2;  // so that the sum does not overflow
  return half - half % turns + turn;
}

bool changes_any(const task& t, distribution how) {
  const auto& tensors = how == distribution::weights ? t.parameters : t.inputs;
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const tensor_spec& spec) { return !is_always_declared(spec); });
}

std::optional<variation> variation_of(const task& t, std::size_t tensor, const task_case& at,
                                      distribution how, std::uint64_t seed) {
  const tensor_spec& spec = tensor_of(t, tensor);
  const distribution own = of_tensor(t, tensor, how, seed);
  if (own == distribution::declared || is_always_declared(spec)) return std::nullopt;
  const std::vector<std::int64_t> shape = resolve_shape(spec, at);
  const std::int64_t n = element_count(shape);
  if (n == 0) return std::nullopt;
  variation v{};
  v.seed = hashed(seed, tensor, 18);
  v.n = static_cast<random_word>(n);
  v.stride = v.extent = v.block = v.kept = 1;
  const bool is_flag = spec.init.of == kind::constant && spec.type == dtype::boolean;
  v.of = is_flag ? static_cast<int>(vary_coin) : static_cast<int>(spec.init.of);
  v.is_integral = is_floating(spec.type) ? 0 : 1;
  v.how = static_cast<int>(own);
  if (is_data(spec)) {
    choose_rows(v, shape);
    return v;
  }
  v.a = argument_of(spec.init.a, at);
  v.b = argument_of(spec.init.b, at);
  v.quiet = quiet_value(spec, v.a, v.b);
  const bool is_input = tensor < t.inputs.size();
  const bool is_raw = !spec.init.expr.empty();
  const double spread = std::abs(spec.init.of == kind::uniform ? v.b - v.a : v.b);
  const bool is_one = own == distribution::one_high || own == distribution::one_low;
  v.outlier = is_raw     ? raw_outlier * spread
              : is_input ? (is_one ? single_outlier : input_outlier)
                         : input_outlier * spread;
  // Parameters that are never negative, such as variances, stay so.
  if (!is_input && spec.init.of == kind::uniform && v.a >= 0) v.is_positive = 1;
  v.is_gentle = is_raw ? 1 : 0;
  const int widest = is_input && !is_raw ? widest_scale : widest_weight_scale;
  v.lowest = spec.init.of == kind::uniform ? -2 * widest : -widest;
  v.highest = spec.init.of == kind::uniform ? 0 : widest;
  choose_slices(v, shape);
  return v;
}

void vary(tensor_value& raw, const variation& v) {
  if (raw.layout.type == dtype::int64) {
    change_all<std::int64_t>(raw,
                             [&](long long x, random_word i) { return varied_integer(x, i, v); });
  } else {
    change_all<float>(raw, [&](float x, random_word i) { return varied_number(x, i, v); });
  }
}

void vary_data(tensor_value& value, const variation& v) {
  const std::size_t row = value.bytes.size() / std::max<std::size_t>(1, v.extent);
  const std::vector<std::byte> before = value.bytes;
  for (random_word r = 0; r < v.extent; ++r)
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(source_row(v, r) * row), row,
                value.bytes.begin() + static_cast<std::ptrdiff_t>(r * row));
  if (!is_floating(value.layout.type)) return;
  std::vector<double> numbers = to_doubles(value);
  const std::size_t elements = numbers.size() / std::max<std::size_t>(1, v.extent);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] *= row_factor(v, elements > 0 ? i / elements : 0);
  value = from_doubles(numbers, value.layout);
}

}  // namespace hone
