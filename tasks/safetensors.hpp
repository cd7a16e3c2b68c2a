#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// The safetensors container (github.com/huggingface/safetensors): an 8-byte little-endian header
// size, a JSON header, data. A file that is truncated, overlapping, out of bounds or otherwise
// damaged is refused with std::runtime_error that names the tensor; reading never goes outside the
// bytes given.
struct safetensor {
  std::string name;
  std::string dtype;  // "F32", "F16", "BF16", "F64", "I32", "I64", "BOOL", "U8", ...
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // row-major, little endian
};

// Views into `file`, which must outlive them; sorted by position.
std::vector<safetensor> parse_safetensors(std::string_view file);

// Writes a file of these tensors, in this order, one right behind the other; the first is aligned
// to 8 bytes. Errors are the stream's.
void write_safetensors(std::ostream& out, const std::vector<safetensor>& tensors);

// Bytes of one element; 0 for a type that is not known.
std::size_t safetensors_element_bytes(std::string_view dtype);

}  // namespace hone
