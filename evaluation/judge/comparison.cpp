#include "evaluation/judge/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace hone {
namespace {

// A constant is within a loose tolerance of a nearby expected output that hardly varies. If the
// expected output varies by more than rounding, the errors must be smaller than half of that
// variation, or smaller than twice the reference's own errors.
constexpr double unexplained_share = 0.5;
constexpr double rounding_steps = 16;
// Where an output is nothing but rounding errors, a few elements may all be alike by chance, as the
// results of a ReLU are: with this many elements at most.
constexpr std::size_t few_elements = 64;

// The share of an output's elements that a program may miss, beside twice as many as the reference
// itself misses. Chance may make it miss one of few elements, and two of more.
constexpr double missed_share = 1.0 / 16;
double missed_by_chance(std::size_t elements) { return elements < 32 ? 1 : 2; }

double square(double x) { return x * x; }

double epsilon_of(dtype type) {
  switch (type) {
    case dtype::float16:
      return 0x1p-10;
    case dtype::bfloat16:
      return 0x1p-7;
    case dtype::float64:
      return 0x1p-52;
    default:
      return 0x1p-23;
  }
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string index_text(std::size_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % static_cast<std::size_t>(shape[d]);
    flat /= static_cast<std::size_t>(shape[d]);
  }
  std::string text = "[";
  for (std::size_t d = 0; d < index.size(); ++d)
    text += (d > 0 ? ", " : "") + std::to_string(index[d]);
  return text + "]";
}

bool is_constant(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double x) {
    return x == values.front() || (std::isnan(x) && std::isnan(values.front()));
  });
}

// Returns true for two NaNs, and for infinities of the same sign.
bool same_special(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

agreement compare_exact(const tensor_value& actual, const tensor_value& own,
                        const tensor_value* wide) {
  const std::size_t element = bytes_of(actual.layout.type);
  const auto differs = [&](const tensor_value& expected, std::size_t i) {
    return std::memcmp(actual.bytes.data() + i * element, expected.bytes.data() + i * element,
                       element) != 0;
  };
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < actual.layout.elements() && !first; ++i) {
    if (differs(own, i) && (wide == nullptr || differs(*wide, i))) first = i;
  }
  return conclude_exact(first, actual.layout, [&](std::size_t i) {
    return element_text{to_doubles(actual)[i], to_doubles(own)[i], false};
  });
}

struct error_measures {
  double worst_ratio = 0;  // largest |a - b| over the error allowed for that element
  std::size_t worst_at = 0;
  double relative_l2 = 0;
  double error = 0;  // sum of squares
  std::uint64_t missed = 0;
};

error_measures measure(const std::vector<double>& a, const std::vector<double>& b, double rms,
                       tolerance allowed, const miss_limits& limits) {
  error_measures m;
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    const double difference = std::abs(a[i] - b[i]);
    const double limit = allowed.atol * std::max(rms, tiny) + allowed.rtol * std::abs(b[i]);
    const double ratio = limit > 0 ? difference / limit : difference > 0 ? 1e300 : 0;
    if (ratio > m.worst_ratio) {
      m.worst_ratio = ratio;
      m.worst_at = i;
    }
    error += difference * difference;
    norm += b[i] * b[i];
    if (difference > std::max(limits.noise, limits.share * std::abs(b[i]))) ++m.missed;
  }
  m.error = error;
  m.relative_l2 = std::sqrt(error) / std::max(std::sqrt(norm), tiny);
  return m;
}

// The size of an output, over its finite elements.
struct output_size {
  double rms = 0;
  double typical = 0;  // as for miss_limits_of()
};

output_size size_of(const std::vector<double>& values) {
  double squares = 0;
  double roots = 0;
  double count = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    squares += x * x;
    roots += std::sqrt(std::abs(x));
    ++count;
  }
  return count > 0 ? output_size{std::sqrt(squares / count), square(roots / count)} : output_size{};
}

bool is_poison(const tensor_value& value, std::size_t i) {
  const std::size_t element = bytes_of(value.layout.type);
  return std::all_of(value.bytes.begin() + static_cast<std::ptrdiff_t>(i * element),
                     value.bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * element),
                     [](std::byte b) { return b == std::byte{0xff}; });
}

agreement compare_floating(const tensor_value& actual, const tensor_value& own,
                           const tensor_value* wide, tolerance allowed) {
  const std::vector<double> a = to_doubles(actual);
  const std::vector<double> reference = to_doubles(own);
  const std::vector<double> b =
      wide != nullptr ? to_doubles(convert_floating(*wide, actual.layout.type)) : reference;
  const auto [rms, typical] = size_of(b);
  output_errors errors;
  for (std::size_t i = 0; i < a.size() && !errors.first_bad; ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) continue;
    if (same_special(a[i], b[i]) ||
        (same_special(a[i], reference[i]) && !std::isfinite(reference[i])))
      continue;
    // If only the float64 run is not finite here, a finite element is compared with the reference's
    // run in its own type.
    const bool agrees = std::isfinite(a[i]) && std::isfinite(reference[i]) &&
                        std::abs(a[i] - reference[i]) <= allowed.atol * std::max(rms, tiny) +
                                                             allowed.rtol * std::abs(reference[i]);
    if (!agrees) errors.first_bad = i;
  }
  const miss_limits limits = miss_limits_of(actual.layout.type, allowed, typical);
  const error_measures given = measure(a, b, rms, allowed, limits);
  const error_measures own_error = measure(reference, b, rms, allowed, limits);
  errors.given = {given.worst_ratio, given.relative_l2};
  errors.worst_at = given.worst_at;
  errors.own = {own_error.worst_ratio, own_error.relative_l2};
  errors.given_error = given.error;
  errors.own_error = own_error.error;
  errors.missed = given.missed;
  errors.own_missed = own_error.missed;
  double sum = 0;
  double finite = 0;
  for (const double x : b) {
    if (!std::isfinite(x)) continue;
    sum += x;
    errors.expected_norm += x * x;
    ++finite;
  }
  errors.expected_deviation =
      finite > 0 ? std::max(0.0, errors.expected_norm - sum * sum / finite) : 0;
  errors.is_constant = is_constant(a);
  errors.is_expected_constant = is_constant(b);
  return conclude(errors, actual.layout, allowed, [&](std::size_t i) {
    return element_text{a[i], b[i], is_poison(actual, i)};
  });
}

}  // namespace

miss_limits miss_limits_of(dtype type, tolerance allowed, double typical) {
  // Some roundings, of the least exact arithmetic that the tolerance admits, of a number of that
  // magnitude or of 1, which many formulas have in between.
  constexpr double tf32_epsilon = 0x1p-10;
  const bool admits_tf32 = type == dtype::float32 && allowed.rtol >= 0.01;
  const double epsilon = admits_tf32 ? tf32_epsilon : epsilon_of(type);
  return {std::max(2 * epsilon, allowed.atol / 4) * std::max(typical, 1.0),
          std::min(1000 * allowed.rtol, unexplained_share)};
}

double inexactness_of_reference(const output_errors& errors, tolerance allowed) {
  return std::max(errors.own.worst_ratio, errors.own.relative_l2 / std::max(allowed.rtol, tiny));
}

agreement conclude(const output_errors& errors, const tensor_layout& layout, tolerance allowed,
                   const std::function<element_text(std::size_t)>& look) {
  agreement result;
  result.reference_inexactness = inexactness_of_reference(errors, allowed);
  const auto described = [&](std::size_t i, const element_text& e) {
    return "element " + index_text(i, layout.shape) + " is " + number(e.actual) + ", expected " +
           number(e.expected);
  };
  if (errors.first_bad) {
    const element_text e = look(*errors.first_bad);
    result.worst_element = 1e300;
    result.problem = e.is_poison ? "element " + index_text(*errors.first_bad, layout.shape) +
                                       " was never written"
                                 : described(*errors.first_bad, e);
    return result;
  }
  // Twice the reference's own error is allowed if that is more than the tolerance, so that no
  // program is refused for being as inexact as the reference. Errors of single elements come in
  // roundings, and one rounding is exactly twice half of one, so of these somewhat more is allowed.
  const double element_limit = std::max(1.0, 2.5 * errors.own.worst_ratio);
  const double l2_limit = std::max(allowed.rtol, 2 * errors.own.relative_l2);
  result.worst_element = errors.given.worst_ratio / element_limit;
  result.relative_l2 = errors.given.relative_l2;
  const bool is_as_exact = errors.given_error <= 4 * errors.own_error;
  // An output shows no work where the expected one varies by no more than rounding, as saturated
  // sigmoids do, or is next to zero, as products of many numbers are.
  const bool is_expected_to_vary =
      errors.expected_norm > square(tiny) * static_cast<double>(layout.elements()) &&
      errors.expected_deviation >
          square(rounding_steps * epsilon_of(layout.type)) * errors.expected_norm;
  const bool is_chance = is_as_exact && layout.elements() <= few_elements;
  const double most_missed = std::max(missed_share * static_cast<double>(layout.elements()),
                                      missed_by_chance(layout.elements())) +
                             2 * static_cast<double>(errors.own_missed);
  if (errors.given.worst_ratio > element_limit) {
    result.problem = described(errors.worst_at, look(errors.worst_at)) + " (" +
                     number(result.worst_element) + " times what is allowed)";
  } else if (errors.given.relative_l2 > l2_limit) {
    result.problem =
        "relative L2 error " + number(errors.given.relative_l2) + ", allowed " + number(l2_limit);
  } else if (layout.elements() > 1 && errors.is_constant && !errors.is_expected_constant &&
             is_expected_to_vary && !is_chance) {
    result.problem = "is constant where the expected output is not";
    result.only_by_tolerance = true;
  } else if (is_expected_to_vary &&
             errors.given_error > square(unexplained_share) * errors.expected_deviation &&
             !is_as_exact) {
    result.problem = "does not follow the expected output: its errors are " +
                     number(100 * std::sqrt(errors.given_error / errors.expected_deviation)) +
                     " % of that output's variation";
    result.only_by_tolerance = true;
  } else if (static_cast<double>(errors.missed) > most_missed) {
    result.problem =
        number(static_cast<double>(errors.missed)) + " of " +
        number(static_cast<double>(layout.elements())) + " elements are off by more than " +
        number(100 * miss_limits_of(layout.type, allowed, 0).share) + " % of themselves";
    result.only_by_misses = true;
  }
  return result;
}

agreement conclude_exact(std::optional<std::size_t> first_wrong, const tensor_layout& layout,
                         const std::function<element_text(std::size_t)>& look) {
  agreement result;
  if (!first_wrong) return result;
  const element_text e = look(*first_wrong);
  result.worst_element = 1e300;
  result.problem = "element " + index_text(*first_wrong, layout.shape) + " is " + number(e.actual) +
                   ", expected " + number(e.expected);
  return result;
}

agreement compare_output(const tensor_value& actual, const tensor_value& own,
                         const tensor_value* wide, tolerance allowed) {
  if (!is_floating(actual.layout.type))
    return compare_exact(actual, own,
                         wide != nullptr && wide->layout.type == own.layout.type ? wide : nullptr);
  return compare_floating(actual, own, wide, allowed);
}

agreement compare_all(const std::vector<tensor_layout>& given,
                      const std::vector<tensor_layout>& expected,
                      const std::function<agreement(std::size_t)>& compare) {
  agreement worst;
  if (given.size() != expected.size()) {
    worst.problem =
        std::to_string(given.size()) + " outputs, expected " + std::to_string(expected.size());
    return worst;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name = given.size() > 1 ? "output " + std::to_string(i) + ": " : "";
    if (given[i] != expected[i]) {
      worst.problem =
          name + "is " + print_layout(given[i]) + ", expected " + print_layout(expected[i]);
      return worst;
    }
    const agreement one = compare(i);
    worst.worst_element = std::max(worst.worst_element, one.worst_element);
    worst.relative_l2 = std::max(worst.relative_l2, one.relative_l2);
    worst.reference_inexactness = std::max(worst.reference_inexactness, one.reference_inexactness);
    if (one.problem && (!one.only_by_misses || !worst.problem)) {
      worst.problem = name + *one.problem;
      worst.only_by_tolerance = one.only_by_tolerance;
      worst.only_by_misses = one.only_by_misses;
    }
    if (one.problem && !one.only_by_misses) return worst;
  }
  return worst;
}

agreement compare_outputs(const value_set& actual, const expected_outputs& expected,
                          const task& t) {
  return compare_all(layouts_of(actual), layouts_of(expected.own), [&](std::size_t i) {
    return compare_output(actual[i], expected.own[i],
                          expected.wide ? &(*expected.wide)[i] : nullptr,
                          tolerance_for(t, actual[i].layout.type));
  });
}

}  // namespace hone
