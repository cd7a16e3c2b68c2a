#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// A tensor of a safetensors file (github.com/huggingface/safetensors). Such a file consists of an
// 8-byte little-endian header size, a JSON header and the data of the tensors.
struct safetensor {
  std::string name;
  std::string dtype;  // "F32", "F16", "BF16", "F64", "I32", "I64", "BOOL", "U8", ...
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // row-major, little endian
};

// Returns the tensors of a file, sorted by position. Their bytes are views into `file`, which must
// outlive them. Throws std::runtime_error, which names the tensor, if the file is truncated, if
// tensors overlap, leave gaps or are out of bounds, or if the file is damaged otherwise. Never
// reads outside of `file`.
std::vector<safetensor> parse_safetensors(std::string_view file);

// Writes a file of `tensors`, in this order and without gaps. The first tensor is aligned to 8
// bytes. The state of the stream reports errors.
void write_safetensors(std::ostream& out, const std::vector<safetensor>& tensors);

// Returns the bytes of one element, or 0 if the type is unknown.
std::size_t safetensors_element_bytes(std::string_view dtype);

}  // namespace hone
