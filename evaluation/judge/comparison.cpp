#include "evaluation/judge/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "evaluation/judge/element_rule.cuh"

namespace hone {
namespace {

using namespace judging;

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

bool is_poison(const tensor_value& value, std::size_t i) {
  const std::size_t element = bytes_of(value.layout.type);
  return std::all_of(value.bytes.begin() + static_cast<std::ptrdiff_t>(i * element),
                     value.bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * element),
                     [](std::byte b) { return b == std::byte{0xff}; });
}

// Returns all runs' values of one output whose type is that of the run in the reference's types.
std::vector<const tensor_value*> runs_of_one_type(const expected_outputs& expected,
                                                  std::size_t index) {
  std::vector<const tensor_value*> runs = {&expected.own[index]};
  const auto add = [&](const value_set& run) {
    if (run[index].layout.type == runs.front()->layout.type) runs.push_back(&run[index]);
  };
  if (expected.wide) add(*expected.wide);
  for (const value_set& run : expected.noisy) add(run);
  for (const value_set& run : expected.alternatives) add(run);
  return runs;
}

// An element of an exact type is right if any run of the reference gives the same.
agreement compare_exact(const tensor_value& actual, const expected_outputs& expected,
                        std::size_t index) {
  const auto runs = runs_of_one_type(expected, index);
  const std::size_t element = bytes_of(actual.layout.type);
  const auto is_right = [&](std::size_t i) {
    return std::any_of(runs.begin(), runs.end(), [&](const tensor_value* run) {
      return std::memcmp(actual.bytes.data() + i * element, run->bytes.data() + i * element,
                         element) == 0;
    });
  };
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < actual.layout.elements() && !first; ++i) {
    if (!is_right(i)) first = i;
  }
  return conclude_exact(first, actual.layout, [&](std::size_t i) {
    return element_text{to_doubles(actual)[i], to_doubles(*runs.front())[i], false};
  });
}

// The numbers of one output in all runs.
class output_runs {
 public:
  output_runs(const expected_outputs& expected, std::size_t index, dtype type)
      : limits_(limits_of(type)), own_(to_doubles(expected.own[index])) {
    const auto numbers = [&](const std::optional<value_set>& run) {
      return run ? to_doubles(convert_floating((*run)[index], type)) : own_;
    };
    wide_ = numbers(expected.wide);
    settled_ = expected.settled ? numbers(expected.settled) : wide_;
    for (const value_set& run : expected.noisy) noisy_.push_back(to_doubles(run[index]));
    for (const value_set& run : expected.alternatives)
      alternatives_.push_back(to_doubles(run[index]));
  }

  std::size_t size() const { return own_.size(); }
  const type_limits& limits() const { return limits_; }
  double expected(std::size_t i) const { return wide_[i]; }
  double error_of_rounding(std::size_t i) const {
    double spread = 0;
    for (const auto& run : noisy_) spread = wider_spread(spread, own_[i], run[i]);
    return rounding_error(spread, own_[i], settled_[i], limits_.unit, limits_.least);
  }
  double error_around(std::size_t i) const {
    std::array<double, JUDGE_NEIGHBORS> errors{};
    int count = 0;
    for (std::size_t j = first_neighbor(i, size()); j < size() && count < JUDGE_NEIGHBORS; ++j)
      errors[static_cast<std::size_t>(count++)] = error_of_rounding(j);
    return median_of(errors.data(), count);
  }
  double distance(double x, std::size_t i, double limit) const {
    if (alternatives_.empty()) return std::abs(x - wide_[i]);
    std::array<double, JUDGE_MOST_ALTERNATIVES + 2> results{};
    int count = 0;
    const auto add = [&](double result) {
      if (is_number(result)) results[static_cast<std::size_t>(count++)] = result;
    };
    add(wide_[i]);
    add(own_[i]);
    for (const auto& run : alternatives_) add(run[i]);
    return distance_from_results(x, results.data(), count, limit);
  }
  bool is_right(double x, std::size_t i, double limit) const {
    if (is_right_special(x, own_[i], wide_[i], limit)) return true;
    const auto is_same = [&](const std::vector<double>& run) { return same_number(x, run[i]); };
    return std::any_of(noisy_.begin(), noisy_.end(), is_same) ||
           std::any_of(alternatives_.begin(), alternatives_.end(), is_same);
  }

 private:
  type_limits limits_;
  std::vector<double> own_;
  std::vector<double> wide_;
  std::vector<double> settled_;
  std::vector<std::vector<double>> noisy_;
  std::vector<std::vector<double>> alternatives_;
};

double geometric_mean(double logarithms, unsigned long long count) {
  return count > 0 ? std::exp(logarithms / static_cast<double>(count)) : 0;
}

// As measure_expected() in judge_kernels/comparison.cuh.
measures measure_expected(const output_runs& runs) {
  measures m;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double value = runs.expected(i);
    if (!is_number(value)) continue;
    m.sum += value;
    m.squares += value * value;
    ++m.finite;
    if (const double error = runs.error_of_rounding(i); error > runs.limits().least) {
      m.errors += std::log(error);
      ++m.error_count;
    }
    if (value != 0) {
      m.values += std::log(std::abs(value));
      ++m.value_count;
    }
  }
  return m;
}

agreement compare_floating(const tensor_value& actual, const expected_outputs& expected,
                           std::size_t index, tolerance allowed) {
  const double known = index < expected.known_errors.size() ? expected.known_errors[index] : 0;
  const std::vector<double> a = to_doubles(actual);
  const output_runs runs(expected, index, actual.layout.type);
  const measures sizes = measure_expected(runs);
  const output_scale scale = scale_of(sizes, allowed, known);
  measures m;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double value = runs.expected(i);
    const element_limit limit = limit_of(runs.error_of_rounding(i), value, scale);
    if (!is_number(a[i]) || !is_number(value)) {
      if (i < m.first_bad && !runs.is_right(a[i], i, allowed_by(limit))) m.first_bad = i;
      continue;
    }
    double ratio = ratio_of(runs.distance(a[i], i, allowed_by(limit)), limit);
    if (may_be_chance(ratio)) {
      const element_limit wider = limit_of(runs.error_around(i), value, scale);
      if (wider.rounding > limit.rounding)
        ratio = ratio_of(runs.distance(a[i], i, allowed_by(wider)), wider);
    }
    if (ratio > m.worst) {
      m.worst = ratio;
      m.worst_at = i;
    }
    m.ratios += ratio * ratio;
    ++m.count;
  }
  return conclude(errors_of(sizes, m), actual.layout, [&](std::size_t i) {
    return element_text{a[i], runs.expected(i), is_poison(actual, i)};
  });
}

}  // namespace

type_limits limits_of(dtype type) {
  switch (type) {
    case dtype::float16:
      return {0x1p-11, 0x1p-24};
    case dtype::bfloat16:
      return {0x1p-8, 0x1p-126};
    case dtype::float64:
      return {0x1p-53, 0x1p-1022};
    default:
      return {0x1p-24, 0x1p-126};
  }
}

output_scale scale_of(const measures& sizes, tolerance allowed, double known_error) {
  const auto finite = static_cast<double>(sizes.finite);
  return {std::max(geometric_mean(sizes.errors, sizes.error_count),
                   known_error * geometric_mean(sizes.values, sizes.value_count)),
          finite > 0 ? std::sqrt(sizes.squares / finite) : 0,
          max_tolerance_of(sizes.sum, sizes.squares, finite), allowed.rtol, allowed.atol};
}

output_errors errors_of(const measures& sizes, const measures& m) {
  output_errors errors;
  if (m.first_bad != measures{}.first_bad) errors.first_bad = m.first_bad;
  errors.worst = m.worst;
  errors.worst_at = m.worst_at;
  errors.squares = m.ratios;
  errors.count = m.count;
  errors.typical_error = geometric_mean(sizes.errors, sizes.error_count);
  errors.typical_value = geometric_mean(sizes.values, sizes.value_count);
  return errors;
}

agreement conclude(const output_errors& errors, const tensor_layout& layout,
                   const std::function<element_text(std::size_t)>& look) {
  agreement result;
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
  result.worst_element = errors.worst;
  const double typical_error =
      errors.typical_value > 0 ? errors.typical_error / errors.typical_value : 0;
  result.typical_errors = {typical_error};
  result.allowed_share = JUDGE_MOST_OF_AN_ELEMENT * typical_error;
  const double count = static_cast<double>(std::max<std::uint64_t>(errors.count, 1));
  const double max_rms =
      (JUDGE_MOST_RMS + JUDGE_MORE_RMS_OF_FEW / std::sqrt(count)) / JUDGE_MOST_OF_AN_ELEMENT;
  result.rms = std::sqrt(errors.squares / count) / max_rms;
  if (result.worst_element > 1) {
    result.problem = described(errors.worst_at, look(errors.worst_at)) + " (" +
                     number(result.worst_element) + " times what rounding allows)";
  } else if (result.rms > 1) {
    result.problem = "the elements are off by " + number(result.rms) +
                     " times what rounding allows, as a root mean square";
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

agreement compare_output(const tensor_value& actual, const expected_outputs& expected,
                         std::size_t index, tolerance allowed) {
  if (actual.bytes == expected.own[index].bytes && !expected.wide) return {};
  return is_floating(actual.layout.type) ? compare_floating(actual, expected, index, allowed)
                                         : compare_exact(actual, expected, index);
}

agreement compare_all(const std::vector<tensor_layout>& given,
                      const std::vector<tensor_layout>& expected,
                      const std::function<agreement(std::size_t)>& compare) {
  agreement worst;
  const auto malformed = [&worst](const std::string& problem) {
    worst.problem = problem;
    worst.is_malformed = true;
    return worst;
  };
  if (given.size() != expected.size())
    return malformed(std::to_string(given.size()) + " outputs, expected " +
                     std::to_string(expected.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name = given.size() > 1 ? "output " + std::to_string(i) + ": " : "";
    if (given[i] != expected[i])
      return malformed(name + "is " + print_layout(given[i]) + ", expected " +
                       print_layout(expected[i]));
    const agreement one = compare(i);
    worst.worst_element = std::max(worst.worst_element, one.worst_element);
    worst.rms = std::max(worst.rms, one.rms);
    worst.allowed_share = std::max(worst.allowed_share, one.allowed_share);
    worst.typical_errors.push_back(one.typical_errors.empty() ? 0 : one.typical_errors.front());
    if (one.problem) {
      worst.problem = name + *one.problem;
      return worst;
    }
  }
  return worst;
}

agreement compare_outputs(const value_set& actual, const expected_outputs& expected,
                          const task& t) {
  return compare_all(layouts_of(actual), layouts_of(expected.own), [&](std::size_t i) {
    return compare_output(actual[i], expected, i, declared_tolerance(t, actual[i].layout.type));
  });
}

}  // namespace hone
