#pragma once

#include <chrono>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/files.capnp.h"
#include "network/blocking_io.hpp"
#include "network/channel.hpp"

namespace hone {

using file_request = record<schema::FileRequest>;
using file_reply = record<schema::FileReply>;
using folder_contents = record<schema::FolderContents>;

// Hash of the bytes of a piece.
using piece_id = id<struct piece_tag>;

// A file is copied in pieces of this size; the last one may be shorter.
inline constexpr std::size_t piece_bytes = std::size_t{8} << 20U;

// How long one end waits for the next bytes of a message that has begun.
inline constexpr std::chrono::seconds message_limit{30};

// Send and receive a record: its length in four bytes, little endian, and its bytes. The receiver
// waits up to `patience` for its beginning, and has all of it before `end`. Throw
// connection_failed, also for bytes that are no such record.
void send_request(channel& to, const file_request& request);
void send_reply(channel& to, const file_reply& reply);
file_request receive_request(channel& from, std::chrono::milliseconds patience);
file_reply receive_reply(channel& from, std::chrono::milliseconds patience,
                         std::chrono::steady_clock::time_point end = endless);

// Returns the number of bytes of a piece; 0 if the file has no such piece.
std::size_t size_of_piece(std::uint64_t file_bytes, std::uint32_t number);
// Returns the number of pieces of a file; an empty file has none.
std::uint32_t count_pieces(std::uint64_t file_bytes);

}  // namespace hone
