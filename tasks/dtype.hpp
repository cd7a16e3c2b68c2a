#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace hone {

// Element types of tensors.
enum class dtype { float32, float16, bfloat16, float64, int32, int64, boolean };
constexpr std::array<dtype, 7> all_dtypes = {dtype::float32, dtype::float16, dtype::bfloat16,
                                             dtype::float64, dtype::int32,   dtype::int64,
                                             dtype::boolean};

std::string_view name_of(dtype type);                     // "float32", ..., "bool"
std::string_view safetensors_name_of(dtype type);         // "F32", ..., "BOOL"
std::optional<dtype> dtype_named(std::string_view name);  // nullopt: there is no such type
std::size_t bytes_of(dtype type);                         // of one element
bool is_floating(dtype type);

}  // namespace hone
