#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include "process/unique_fd.hpp"

struct ssl_st;

namespace hone {

// What came of an attempt to read or write without blocking.
enum class channel_result { done, wants_read, wants_write, closed };

// A connection between two nodes, with TLS or, on a loopback address, without. Reading and writing
// never block. All functions belong to one thread at a time, but shut_down() and note_closing() may
// be called by any.
class channel {
 public:
  // Takes the socket over. `tls` (owned) belongs to the socket; null: without TLS.
  channel(unique_fd socket, ssl_st* tls);
  ~channel();
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  int descriptor() const { return descriptor_; }
  // Makes the TLS handshake go on; without TLS there is none.
  channel_result shake_hands();
  // Read or write some bytes; `moved` is set to their number. With `done` it is not 0.
  channel_result read(void* to, std::size_t size, std::size_t& moved);
  channel_result write(const void* from, std::size_t size, std::size_t& moved);
  // Returns the number of bytes that TLS has read from the socket and read() has not returned yet.
  std::size_t buffered() const;
  // Waits until the socket is ready for the wanted operation; false at the deadline.
  bool wait(channel_result wanted, std::chrono::steady_clock::time_point deadline) const;

  // Shuts down the connection; a thread that reads from it sees its end.
  void shut_down();
  // Leaves the descriptor to another owner, who says when it is about to close it; until then
  // shut_down() has its effect.
  int lend();
  void note_closing();

  // Common name and serial number of the other end's certificate; empty without TLS.
  std::string certificate_name() const;
  std::string certificate_serial() const;
  // Returns why the handshake failed, as a part of a sentence.
  std::string handshake_problem() const;
  // True if the other end has said that it refuses this end, or this end refuses the certificate of
  // the other.
  bool is_refused() const;

 private:
  channel_result result_of(int code, std::size_t& moved);

  const int descriptor_;
  ssl_st* const tls_;
  std::mutex ending_;  // guards the next two
  bool is_open_ = true;
  bool is_owned_ = true;
  std::string problem_;
};

}  // namespace hone
