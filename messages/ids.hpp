#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/schema/identity.capnp.h"

namespace hone {

// A 128-bit identity whose type names the kind of thing that it identifies. Ids of tasks, variants,
// artifacts and programs, and all ids of a corpus document's group, are the XXH3-128 of contents;
// all others are random. An id is plain data: copy it freely and use it as a key. An id of zero is
// empty and converts to false.
template <class Tag>
struct id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  id() = default;
  constexpr id(std::uint64_t high_bits, std::uint64_t low_bits) : high(high_bits), low(low_bits) {}
  explicit id(schema::Id::Reader stored) : high(stored.getHigh()), low(stored.getLow()) {}

  auto operator<=>(const id&) const = default;
  explicit operator bool() const { return high != 0 || low != 0; }

  void store(schema::Id::Builder out) const {
    out.setHigh(high);
    out.setLow(low);
  }
};

using task_id = id<struct task_tag>;
using variant_id = id<struct variant_tag>;
using artifact_id = id<struct artifact_tag>;
using program_id = id<struct program_tag>;
using draw_id = id<struct draw_tag>;
using rollout_id = id<struct rollout_tag>;
using group_id = id<struct group_tag>;
using measurement_id = id<struct measurement_tag>;
using batch_id = id<struct batch_tag>;

// Returns 32 lower-case hexadecimal digits, high bits first.
std::string to_hex(std::uint64_t high, std::uint64_t low);
template <class Tag>
std::string to_string(const id<Tag>& x) {
  return to_hex(x.high, x.low);
}

// Parses exactly 32 hexadecimal digits, upper or lower case, into the high and the low half.
// Returns nullopt for any other text.
std::optional<std::array<std::uint64_t, 2>> parse_hex_id(std::string_view text);

// Convert between the two halves of an id and its 16 bytes, big endian. Keys in this form sort in
// the order of the ids.
std::array<char, 16> to_bytes(std::uint64_t high, std::uint64_t low);
std::array<std::uint64_t, 2> from_bytes(std::span<const char, 16> bytes);

// Returns 64 random bits from a generator of the calling thread, which is seeded once from the
// operating system's random source. Safe on every thread. Throws std::runtime_error if that source
// gives no bytes.
std::uint64_t random_bits();
// Returns a random id that is not empty.
template <class Id>
Id random_id() {
  return Id{random_bits() | 1, random_bits()};
}

// Convert between ids and their halves, high half first, as messages have them.
template <class Ids>
std::vector<std::uint64_t> halves_of(const Ids& ids) {
  std::vector<std::uint64_t> halves;
  for (const auto& one : ids) halves.insert(halves.end(), {one.high, one.low});
  return halves;
}
template <class Id>
std::set<Id> ids_of(const std::vector<std::uint64_t>& halves) {
  std::set<Id> ids;
  for (std::size_t i = 0; i + 1 < halves.size(); i += 2) ids.insert(Id{halves[i], halves[i + 1]});
  return ids;
}

// Returns the XXH3-128 of the parts, high half first. Each part is preceded by its length (8 bytes,
// little endian), so that moving text from one part to another changes the hash.
std::array<std::uint64_t, 2> content_hash(std::span<const std::string_view> parts);
template <class Id>
Id content_id(std::initializer_list<std::string_view> parts) {
  auto [high, low] = content_hash({parts.begin(), parts.size()});
  return Id{high, low};
}

}  // namespace hone

template <class Tag>
struct std::hash<hone::id<Tag>> {
  std::size_t operator()(const hone::id<Tag>& x) const noexcept {
    return x.high ^ (x.low * 0x9e3779b97f4a7c15U);
  }
};
