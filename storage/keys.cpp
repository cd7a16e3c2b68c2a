#include "storage/keys.hpp"

namespace hone {

std::string key_of(std::uint64_t number) {
  std::string key(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) key[i] = static_cast<char>(number >> (56 - 8 * i));
  return key;
}

void append_number(std::string& key, std::uint32_t number) {
  for (std::size_t i = 0; i < 4; ++i) key += static_cast<char>(number >> (24 - 8 * i));
}

std::uint32_t read_number(std::string_view key, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8U | static_cast<unsigned char>(key[at + i]);
  return number;
}

std::string key_of(const evaluation_key& key) {
  std::string bytes = key_of(key.variant);
  bytes += key.device_type;
  bytes += '\0';
  append_number(bytes, key.judge);
  append_number(bytes, key.scope);
  return bytes;
}

std::string rollout_key(const variant_id& variant, const rollout_id& rollout) {
  return key_of(variant) + key_of(rollout);
}

std::string shown_key(const variant_id& variant, const group_id& group) {
  return key_of(variant) + key_of(group);
}

std::uint64_t number_from_key(std::string_view key) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8U | static_cast<unsigned char>(key[i]);
  return number;
}

std::optional<evaluation_key> evaluation_from_key(std::string_view key) {
  if (key.size() < 16 + 1 + 8 || key[key.size() - 9] != '\0') return std::nullopt;
  evaluation_key parsed;
  parsed.variant = id_from_key<variant_id>(key);
  parsed.device_type = std::string(key.substr(16, key.size() - 16 - 9));
  parsed.judge = read_number(key, key.size() - 8);
  parsed.scope = read_number(key, key.size() - 4);
  return parsed;
}

}  // namespace hone
