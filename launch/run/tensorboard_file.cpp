#include "launch/run/tensorboard_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/crc.hpp>
#include <cerrno>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include "messages/clock.hpp"
#include "process/write_failure.hpp"

namespace hone {
namespace {

// Wire types of Protocol Buffers.
enum class wire : unsigned { varint = 0, fixed_64 = 1, bytes = 2, fixed_32 = 5 };

template <class Integer>
void put_little_endian(std::string& to, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    to += static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i)));
}

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7U) to += static_cast<char>(value | 128U);
  to += static_cast<char>(value);
}

void put_key(std::string& to, unsigned field, wire type) {
  put_varint(to, field << 3U | static_cast<unsigned>(type));
}

void put_bytes(std::string& to, unsigned field, std::string_view bytes) {
  put_key(to, field, wire::bytes);
  put_varint(to, bytes.size());
  to += bytes;
}

// CRC-32C, rotated and offset as in tensorflow/tsl/lib/hash/crc32c.h.
std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xa282ead8U;
}

std::string begin_event(std::uint64_t time_ms, std::uint64_t step) {
  std::string event;
  put_key(event, 1, wire::fixed_64);  // wall_time
  put_little_endian(event, std::bit_cast<std::uint64_t>(static_cast<double>(time_ms) / 1e3));
  put_key(event, 2, wire::varint);  // step
  put_varint(event, step);
  return event;
}

std::string encode_scalar(std::string_view tag, double value) {
  std::string scalar;
  put_bytes(scalar, 1, tag);
  put_key(scalar, 2, wire::fixed_32);  // simple_value
  put_little_endian(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  return scalar;
}

std::string event_file_name(std::uint64_t time_ms) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return "events.out.tfevents." + std::to_string(time_ms / 1000) + "." + host.data() + "." +
         std::to_string(getpid());
}

}  // namespace

std::string tensorboard_tag(const std::string& number) {
  const auto has_prefix = [&](std::string_view prefix) { return number.starts_with(prefix); };
  if (has_prefix("share_")) return "outcome/" + number.substr(6);
  if (has_prefix("validation_")) return "validation/" + number.substr(11);
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), number) != names.end();
  };
  if (is_one_of({"score", "log_speedup", "groups_with_signal"})) return "reward/" + number;
  if (is_one_of({"samples", "groups", "groups_used", "distinct_completions", "tokens", "documents",
                 "examples", "updates", "skipped_updates"}))
    return "work/" + number;
  return "learn/" + number;
}

tensorboard_file::tensorboard_file(const std::filesystem::path& run_folder,
                                   std::uint64_t first_version) {
  const std::uint64_t now_ms = unix_ms();
  const std::filesystem::path folder = run_folder / "tensorboard";
  std::filesystem::create_directories(folder);
  path_ = folder / event_file_name(now_ms);
  out_.open(path_, std::ios::binary | std::ios::app);
  std::string header = begin_event(now_ms, 0);
  put_bytes(header, 3, "brain.Event:2");  // file_version
  append(header);
  std::string restart = begin_event(now_ms, first_version);
  put_bytes(restart, 7, "\x08\x01");  // session_log: its status is START
  append(restart);
}

void tensorboard_file::write(const version_record& version, const learned_step& learned) {
  if (learned.numbers.empty()) return;
  std::string summary;
  for (const auto& [name, value] : learned.numbers)
    put_bytes(summary, 1, encode_scalar(tensorboard_tag(name), value));
  std::string event = begin_event(version->getCreatedMs(), version->getVersion());
  put_bytes(event, 5, summary);
  append(event);
}

void tensorboard_file::append(const std::string& event) {
  std::string record;
  put_little_endian(record, std::uint64_t{event.size()});
  put_little_endian(record, masked_crc(record));
  record += event;
  put_little_endian(record, masked_crc(event));
  errno = 0;
  out_ << record << std::flush;
  if (!out_) throw std::runtime_error(write_failure(path_));
}

}  // namespace hone
