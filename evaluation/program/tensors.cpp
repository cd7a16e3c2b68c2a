#include "evaluation/program/tensors.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace hone {
namespace {

template <class T>
T element(const tensor_value& value, std::size_t i) {
  T x;
  std::memcpy(&x, value.bytes.data() + i * sizeof(T), sizeof x);
  return x;
}

template <class T>
void set_element(tensor_value& value, std::size_t i, T x) {
  std::memcpy(value.bytes.data() + i * sizeof(T), &x, sizeof x);
}

template <class T, class Convert>
std::vector<double> read_as_doubles(const tensor_value& value, Convert convert) {
  std::vector<double> numbers(value.layout.elements());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = convert(element<T>(value, i));
  return numbers;
}

template <class T, class Convert>
void write_doubles(tensor_value& value, const std::vector<double>& numbers, Convert convert) {
  for (std::size_t i = 0; i < numbers.size(); ++i) set_element<T>(value, i, convert(numbers[i]));
}

template <class T>
T cut(double x) {
  if (std::isnan(x)) return 0;
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

}  // namespace

std::size_t total_bytes(const std::vector<tensor_layout>& layouts) {
  std::size_t bytes = 0;
  for (const tensor_layout& layout : layouts) bytes += layout.bytes();
  return bytes;
}

std::size_t total_bytes(const value_set& set) {
  std::size_t bytes = 0;
  for (const tensor_value& value : set) bytes += value.bytes.size();
  return bytes;
}

std::vector<tensor_layout> layouts_of(const value_set& set) {
  std::vector<tensor_layout> layouts;
  for (const tensor_value& value : set) layouts.push_back(value.layout);
  return layouts;
}

std::vector<std::int64_t> row_major_strides(const tensor_layout& layout) {
  std::vector<std::int64_t> strides(layout.shape.size(), 1);
  for (std::size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * layout.shape[d];
  return strides;
}

bool is_row_major(const tensor_layout& layout, const std::vector<std::int64_t>& strides) {
  std::int64_t step = 1;
  for (std::size_t d = layout.shape.size(); d-- > 0;) {
    if (layout.shape[d] != 1 && strides[d] != step) return false;
    step *= layout.shape[d];
  }
  return true;
}

std::string print_layout(const tensor_layout& layout) {
  std::string text = std::string(name_of(layout.type)) + "[";
  for (std::size_t i = 0; i < layout.shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(layout.shape[i]);
  return text + "]";
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = bits >> 10U & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13U);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23U | fraction << 13U);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  // 65520 and more rounds to infinity.
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  // The result is subnormal, and the addition rounds.
  if (magnitude < 0x38800000U) {
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13U & 1U);
  return static_cast<std::uint16_t>(sign | (rounded - 0x38000000U) >> 13U);
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16U | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

std::vector<double> to_doubles(const tensor_value& value) {
  switch (value.layout.type) {
    case dtype::float32:
      return read_as_doubles<float>(value, [](float x) { return static_cast<double>(x); });
    case dtype::float16:
      return read_as_doubles<std::uint16_t>(
          value, [](std::uint16_t x) { return static_cast<double>(half_to_float(x)); });
    case dtype::bfloat16:
      return read_as_doubles<std::uint16_t>(
          value, [](std::uint16_t x) { return static_cast<double>(bfloat16_to_float(x)); });
    case dtype::float64:
      return read_as_doubles<double>(value, [](double x) { return x; });
    case dtype::int32:
      return read_as_doubles<std::int32_t>(value,
                                           [](std::int32_t x) { return static_cast<double>(x); });
    case dtype::int64:
      return read_as_doubles<std::int64_t>(value,
                                           [](std::int64_t x) { return static_cast<double>(x); });
    case dtype::boolean:
      return read_as_doubles<std::uint8_t>(value,
                                           [](std::uint8_t x) { return x != 0 ? 1.0 : 0.0; });
  }
  return {};
}

tensor_value from_doubles(const std::vector<double>& numbers, tensor_layout layout) {
  tensor_value value{std::move(layout), {}};
  value.bytes.resize(value.layout.bytes());
  switch (value.layout.type) {
    case dtype::float32:
      write_doubles<float>(value, numbers, [](double x) { return static_cast<float>(x); });
      break;
    case dtype::float16:
      write_doubles<std::uint16_t>(value, numbers,
                                   [](double x) { return float_to_half(static_cast<float>(x)); });
      break;
    case dtype::bfloat16:
      write_doubles<std::uint16_t>(
          value, numbers, [](double x) { return float_to_bfloat16(static_cast<float>(x)); });
      break;
    case dtype::float64:
      write_doubles<double>(value, numbers, [](double x) { return x; });
      break;
    case dtype::int32:
      write_doubles<std::int32_t>(value, numbers, [](double x) { return cut<std::int32_t>(x); });
      break;
    case dtype::int64:
      write_doubles<std::int64_t>(value, numbers, [](double x) { return cut<std::int64_t>(x); });
      break;
    case dtype::boolean:
      write_doubles<std::uint8_t>(
          value, numbers, [](double x) { return static_cast<std::uint8_t>(x != 0 ? 1 : 0); });
      break;
  }
  return value;
}

tensor_value with_type(tensor_value value, dtype type) {
  if (value.layout.type == type) return value;
  return from_doubles(to_doubles(value), {type, value.layout.shape});
}

tensor_value convert_floating(const tensor_value& value, dtype type) {
  if (!is_floating(value.layout.type) || value.layout.type == type) return value;
  if (value.layout.type == dtype::float32 && type == dtype::float64) {
    // The judge's most frequent conversion has a dedicated path.
    tensor_value wide{{type, value.layout.shape}, {}};
    wide.bytes.resize(wide.layout.bytes());
    const std::size_t n = value.layout.elements();
    for (std::size_t i = 0; i < n; ++i)
      set_element(wide, i, static_cast<double>(element<float>(value, i)));
    return wide;
  }
  return from_doubles(to_doubles(value), {type, value.layout.shape});
}

}  // namespace hone
