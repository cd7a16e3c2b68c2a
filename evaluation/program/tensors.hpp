#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "messages/names.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Element type and shape of a tensor.
struct tensor_layout {
  dtype type = dtype::float32;
  std::vector<std::int64_t> shape;

  std::size_t elements() const { return static_cast<std::size_t>(element_count(shape)); }
  std::size_t bytes() const { return elements() * bytes_of(type); }
  bool operator==(const tensor_layout&) const = default;
};

// A tensor's contents in host memory: row-major, in the machine's byte order, bool as one byte.
struct tensor_value {
  tensor_layout layout;
  std::vector<std::byte> bytes;
};

// Returns the elements of a tensor of type T. An array of bytes implicitly creates them.
template <class T>
std::span<T> numbers_of(tensor_value& value) {
  return {std::launder(reinterpret_cast<T*>(value.bytes.data())), value.layout.elements()};
}

// The inputs, the parameters or the outputs of a call.
using value_set = std::vector<tensor_value>;

std::size_t total_bytes(const value_set& set);
std::size_t total_bytes(const std::vector<tensor_layout>& layouts);
std::vector<tensor_layout> layouts_of(const value_set& set);
// Returns the strides, in elements, of a dense tensor in row-major order.
std::vector<std::int64_t> row_major_strides(const tensor_layout& layout);
// Returns true if a tensor with these strides, in elements, is dense and row-major.
bool is_row_major(const tensor_layout& layout, const std::vector<std::int64_t>& strides);
// Returns text such as "float32[512, 256]".
std::string print_layout(const tensor_layout& layout);

// Element conversions, rounding to nearest even as LibTorch does.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
float bfloat16_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat16(float value);

// Converts any type to doubles. 64-bit integers beyond 2^53 lose their last bits.
std::vector<double> to_doubles(const tensor_value& value);
// Converts doubles to the layout's type. Integers are truncated and saturated, and NaN becomes 0. A
// bool is true if the number is not zero.
tensor_value from_doubles(const std::vector<double>& numbers, tensor_layout layout);
// Converts to another type.
tensor_value with_type(tensor_value value, dtype type);
// Converts to another floating-point type; values of other types are copied unchanged.
tensor_value convert_floating(const tensor_value& value, dtype type);

}  // namespace hone
