#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hone {

// What a variant's toml block may ask for. A setting without meaning on a device is ignored there.
struct settings {
  bool fast_math = false;            // device code: fast intrinsics, flush to zero, contraction
  std::optional<int> max_registers;  // device code: registers a thread, 16 to 255
  bool tf32 = false;                 // matrix products of ATen may use TF32
  bool cudnn_benchmark = false;      // convolutions of ATen may try several algorithms
  bool cuda_graph = false;           // the whole host program is captured once and replayed

  bool operator==(const settings&) const = default;
};

// Parses a toml block. Throws std::runtime_error for invalid TOML, an unknown key or a wrong type.
settings parse_settings(std::string_view toml_text);

// One "key = value" a line, sorted by key, defaults left out: equal settings print alike, and parse
// back.
std::string print_settings(const settings& s);

}  // namespace hone
