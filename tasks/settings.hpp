#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hone {

// The settings that a variant's toml block may contain. A device ignores settings that have no
// meaning there.
struct settings {
  bool fast_math = false;            // device code: fast intrinsics, flush to zero, contraction
  std::optional<int> max_registers;  // device code: registers per thread, 16 to 255
  bool tf32 = false;                 // matrix products of ATen may use TF32
  bool cudnn_benchmark = false;      // convolutions of ATen may try several algorithms
  bool cuda_graph = false;           // the whole host program is captured once and replayed

  bool operator==(const settings&) const = default;
};

// Parses a toml block. Throws std::runtime_error for invalid TOML, an unknown key, a wrong type or
// a value out of range.
settings parse_settings(std::string_view toml_text);

// Prints one "key = value" per line, sorted by key, without defaults. Equal settings print alike,
// and the text parses back to the same settings.
std::string print_settings(const settings& s);

}  // namespace hone
