#include "network/files/file_messages.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "network/identity.hpp"

namespace hone {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t max_request = 4096;
// The contents of a folder of a terabyte are shorter.
constexpr std::uint32_t max_reply = 16U << 20U;

template <class Record>
void send(channel& to, const Record& message) {
  const auto size = static_cast<std::uint32_t>(message.bytes().size());
  write_all(to, &size, sizeof size, message_limit);
  write_all(to, message.bytes().data(), size, message_limit);
}

template <class Record>
Record receive(channel& from, std::chrono::milliseconds patience,
               std::chrono::steady_clock::time_point end, std::uint32_t longest) {
  std::uint32_t size = 0;
  read_all(from, &size, sizeof size, patience, end);
  if (size > longest) throw connection_failed("the other end sent no message of this kind");
  std::vector<char> bytes(size);
  read_all(from, bytes.data(), size, message_limit, end);
  try {
    return Record::from_bytes(std::move(bytes));
  } catch (const invalid_record& e) {
    throw connection_failed(std::string("the other end sent no message of this kind: ") + e.what());
  }
}

}  // namespace

void send_request(channel& to, const file_request& request) { send(to, request); }
void send_reply(channel& to, const file_reply& reply) { send(to, reply); }
file_request receive_request(channel& from, std::chrono::milliseconds patience) {
  return receive<file_request>(from, patience, endless, max_request);
}
file_reply receive_reply(channel& from, std::chrono::milliseconds patience,
                         std::chrono::steady_clock::time_point end) {
  return receive<file_reply>(from, patience, end, max_reply);
}

std::size_t size_of_piece(std::uint64_t file_bytes, std::uint32_t number) {
  const std::uint64_t begin = std::uint64_t{number} * piece_bytes;
  return begin < file_bytes
             ? static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, file_bytes - begin))
             : 0;
}

std::uint32_t count_pieces(std::uint64_t file_bytes) {
  return static_cast<std::uint32_t>((file_bytes + piece_bytes - 1) / piece_bytes);
}

}  // namespace hone
