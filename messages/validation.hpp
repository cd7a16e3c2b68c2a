#pragma once

#include <capnp/schema.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

// Bounds on a record that comes from outside this process: its size, and how deeply its pointers
// may be nested.
inline constexpr std::size_t max_record_bytes = 64U << 20U;
inline constexpr int max_record_depth = 32;

// Returns how many words may be read of a record of `words` words. Several of its pointers may have
// the same target, which is read, and is present in a copy, once for each.
constexpr std::uint64_t max_words_read(std::uint64_t words) { return 8 * words + 1024; }

// Walks a whole serialized message once. Checks the framing, the size, the nesting, every pointer,
// every enumerant, the NUL at the end of text, and the fields that the schema marks as required.
// Refuses pointers that no field names, and lists whose elements are stored in another form than
// the schema's: an accepted message can be copied whole, and max_words_read() bounds a copy.
// Returns a description of the first problem, or nullopt if there is none. Never reads outside
// `bytes`, whatever their contents; the work is bounded by a small multiple of their size. `bytes`
// must be aligned for words. Schemas with groups, interfaces or AnyPointer are refused.
std::optional<std::string> find_problem(std::string_view bytes, capnp::StructSchema schema);

}  // namespace hone
