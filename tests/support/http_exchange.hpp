#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "network/address.hpp"

namespace hone::testing_support {

// A connection to a server on loopback, on which a test sends and receives bytes.
class raw_connection {
 public:
  explicit raw_connection(std::uint16_t port)
      : socket_(connect_socket({"127.0.0.1", port},
                               std::chrono::steady_clock::now() + std::chrono::seconds(10))) {
    const timeval limit{60, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    fcntl(socket_.get(), F_SETFL, 0);  // blocks
  }
  // Returns whether all bytes were taken.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Returns one answer, its head included; empty if the server has closed the connection.
  std::string receive() {
    for (;;) {
      const std::size_t head = read_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const std::size_t field = read_.find("Content-Length: ");
        const std::size_t size =
            head + 4 + (field < head ? std::stoul(read_.substr(field + 16)) : 0);
        if (read_.size() >= size) {
          std::string answer = read_.substr(0, size);
          read_.erase(0, size);
          return answer;
        }
      }
      std::string part(65536, '\0');
      const ssize_t count = recv(socket_.get(), part.data(), part.size(), 0);
      if (count <= 0) return {};
      read_.append(part, 0, static_cast<std::size_t>(count));
    }
  }
  // Returns so many bytes, or fewer if the server has closed the connection.
  std::string receive_bytes(std::size_t size) {
    while (read_.size() < size) {
      std::string part(65536, '\0');
      const ssize_t count = recv(socket_.get(), part.data(), part.size(), 0);
      if (count <= 0) break;
      read_.append(part, 0, static_cast<std::size_t>(count));
    }
    std::string bytes = read_.substr(0, size);
    read_.erase(0, bytes.size());
    return bytes;
  }

 private:
  unique_fd socket_;
  std::string read_;
};

// A WebSocket on loopback.
class web_socket_client {
 public:
  web_socket_client(std::uint16_t port, const std::string& target) : connection_(port) {
    connection_.send("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                     "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
                     "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    greeting_ = connection_.receive();
  }
  const std::string& greeting() const { return greeting_; }
  // Sends a message of less than 64 KiB. Its mask of zeros leaves it as it is.
  void send(const std::string& message) const {
    std::string frame = "\x81";
    const bool is_short = message.size() < 126;
    frame += static_cast<char>(0x80U | (is_short ? message.size() : 126U));
    if (!is_short) {
      frame += static_cast<char>(message.size() >> 8U);
      frame += static_cast<char>(message.size() & 255U);
    }
    connection_.send(frame + std::string(4, '\0') + message);
  }
  // Returns a message; empty if the server has closed the connection.
  std::string receive() {
    const std::string head = connection_.receive_bytes(2);
    if (head.size() < 2 || (head[0] & 15) != 1) return {};
    std::size_t size = static_cast<unsigned char>(head[1]) & 127U;
    if (size >= 126) {
      const std::string more = connection_.receive_bytes(size == 126 ? 2 : 8);
      size = 0;
      for (const char c : more) size = size * 256 + static_cast<unsigned char>(c);
    }
    return connection_.receive_bytes(size);
  }

 private:
  raw_connection connection_;
  std::string greeting_;
};

struct http_answer {
  int status = 0;  // 0: none
  std::string head;
  std::string body;
};

// Sends a request with a body of JSON and returns the answer.
inline http_answer fetch(std::uint16_t port, const std::string& method, const std::string& target,
                         const std::string& body = "", const std::string& token = "",
                         const std::string& more_head = "") {
  raw_connection connection(port);
  std::string request = method + " " + target +
                        " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                        "\r\nConnection: close\r\n" + more_head;
  if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
  if (!body.empty())
    request +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  connection.send(request + "\r\n" + body);
  const std::string answer = connection.receive();
  const std::size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos) return {};
  return {std::stoi(answer.substr(9)), answer.substr(0, head), answer.substr(head + 4)};
}

}  // namespace hone::testing_support
