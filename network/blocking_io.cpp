#include "network/blocking_io.hpp"

#include <algorithm>

#include "network/identity.hpp"

namespace hone {
namespace {

// Calls `move(offset, moved)` until all bytes have moved.
template <class Move>
void move_all(const channel& over, std::size_t size, std::chrono::milliseconds patience,
              std::chrono::steady_clock::time_point end, const Move& move) {
  for (std::size_t offset = 0; offset < size;) {
    std::size_t moved = 0;
    const channel_result result = move(offset, moved);
    if (result == channel_result::closed) throw connection_failed("the connection ended");
    offset += moved;
    const auto now = std::chrono::steady_clock::now();
    const bool goes_on = result == channel_result::done
                             ? now < end
                             : over.wait(result, std::min(now + patience, end));
    if (!goes_on) throw connection_failed("the other end does not go on");
  }
}

}  // namespace

void read_all(channel& from, void* to, std::size_t size, std::chrono::milliseconds patience,
              std::chrono::steady_clock::time_point end) {
  move_all(from, size, patience, end, [&](std::size_t offset, std::size_t& moved) {
    return from.read(static_cast<char*>(to) + offset, size - offset, moved);
  });
}

void write_all(channel& to, const void* from, std::size_t size,
               std::chrono::milliseconds patience) {
  move_all(to, size, patience, endless, [&](std::size_t offset, std::size_t& moved) {
    return to.write(static_cast<const char*>(from) + offset, size - offset, moved);
  });
}

}  // namespace hone
