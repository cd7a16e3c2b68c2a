#include "messages/ids.hpp"

#include <sys/random.h>
#include <xxhash.h>

#include <bit>
#include <memory>
#include <random>
#include <stdexcept>

namespace hone {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(std::uint64_t high, std::uint64_t low) {
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[15 - i] = digits[(high >> (4 * i)) & 15];
    text[31 - i] = digits[(low >> (4 * i)) & 15];
  }
  return text;
}

std::optional<std::array<std::uint64_t, 2>> parse_hex_id(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < 32; ++i) {
    const int value = digit_value(text[i]);
    if (value < 0) return std::nullopt;
    halves[i / 16] = halves[i / 16] << 4 | static_cast<std::uint64_t>(value);
  }
  return halves;
}

std::array<char, 16> to_bytes(std::uint64_t high, std::uint64_t low) {
  std::array<char, 16> bytes{};
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(low >> (56 - 8 * i));
  }
  return bytes;
}

std::array<std::uint64_t, 2> from_bytes(std::span<const char, 16> bytes) {
  std::array<std::uint64_t, 2> halves{};
  for (int i = 0; i < 16; ++i)
    halves[i / 8] = halves[i / 8] << 8 | static_cast<unsigned char>(bytes[i]);
  return halves;
}

std::uint64_t random_bits() {
  thread_local std::mt19937_64 source = [] {
    std::array<std::uint32_t, 8> entropy{};
    if (getrandom(entropy.data(), sizeof entropy, 0) != static_cast<ssize_t>(sizeof entropy)) {
      throw std::runtime_error("the operating system gave no random bytes");
    }
    std::seed_seq sequence(entropy.begin(), entropy.end());
    return std::mt19937_64(sequence);
  }();
  return source();
}

std::array<std::uint64_t, 2> content_hash(std::span<const std::string_view> parts) {
  thread_local const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (std::string_view part : parts) {
    std::uint64_t size = part.size();
    if constexpr (std::endian::native == std::endian::big) size = __builtin_bswap64(size);
    XXH3_128bits_update(state.get(), &size, sizeof size);
    XXH3_128bits_update(state.get(), part.data(), part.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.high64, hash.low64};
}

}  // namespace hone
