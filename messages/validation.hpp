#pragma once

#include <capnp/schema.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

// Bounds on a message that comes from outside this process.
inline constexpr std::size_t max_record_bytes = 64U << 20U;
inline constexpr int max_record_depth = 32;

// Walks a whole serialised message once: framing, size, nesting, every pointer, every enumerant,
// text that ends in NUL, and the fields that the schema marks as required. Returns what is wrong,
// or nothing. Never reads outside `bytes`, whatever they hold; work is bounded by a small multiple
// of their size. `bytes` must be aligned for words.
std::optional<std::string> find_problem(std::string_view bytes, capnp::StructSchema schema);

}  // namespace hone
