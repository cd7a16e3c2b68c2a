#include "tasks/dtype.hpp"

namespace hone {
namespace {

struct dtype_facts {
  dtype type;
  std::string_view name;
  std::string_view safetensors;
  std::size_t bytes;
};
constexpr std::array<dtype_facts, 7> dtype_table = {{{dtype::float32, "float32", "F32", 4},
                                                     {dtype::float16, "float16", "F16", 2},
                                                     {dtype::bfloat16, "bfloat16", "BF16", 2},
                                                     {dtype::float64, "float64", "F64", 8},
                                                     {dtype::int32, "int32", "I32", 4},
                                                     {dtype::int64, "int64", "I64", 8},
                                                     {dtype::boolean, "bool", "BOOL", 1}}};

const dtype_facts& facts_of(dtype type) { return dtype_table[static_cast<std::size_t>(type)]; }

}  // namespace

std::string_view name_of(dtype type) { return facts_of(type).name; }
std::string_view safetensors_name_of(dtype type) { return facts_of(type).safetensors; }
std::size_t bytes_of(dtype type) { return facts_of(type).bytes; }
bool is_floating(dtype type) {
  return type != dtype::int32 && type != dtype::int64 && type != dtype::boolean;
}

std::optional<dtype> dtype_named(std::string_view name) {
  for (const dtype_facts& facts : dtype_table) {
    if (facts.name == name) return facts.type;
  }
  return std::nullopt;
}

}  // namespace hone
