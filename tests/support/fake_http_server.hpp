#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hone::testing_support {

// An HTTP server on loopback whose answers are bytes that a test writes, right or wrong. Every
// connection carries one request and has a separate thread.
class fake_http_server {
 public:
  // Returns the bytes to answer with. `request` is the whole request, its head included.
  using answer = std::function<std::string(const std::string& request)>;

  explicit fake_http_server(answer what) : answer_(std::move(what)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        listen(listener_, 64) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(at.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~fake_http_server() { stop(); }
  fake_http_server(const fake_http_server&) = delete;
  fake_http_server& operator=(const fake_http_server&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  int requests() const { return requests_; }
  int max_at_once() const { return max_at_once_; }
  // From now on, nobody listens here.
  void stop() {
    if (stopped_.exchange(true)) return;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    std::vector<std::thread> all;
    {
      const std::lock_guard hold(lock_);
      all.swap(connections_);
    }
    for (std::thread& one : all) one.join();
  }

  static std::string reply(int status, const std::string& body, const std::string& head = "") {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
           head + "Connection: close\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }

 private:
  void accept_all() {
    for (;;) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const std::lock_guard hold(lock_);
      connections_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    std::string request;
    std::vector<char> part(65536);
    while (!is_whole(request)) {
      const ssize_t count = recv(connection, part.data(), part.size(), 0);
      if (count <= 0) break;
      request.append(part.data(), static_cast<std::size_t>(count));
    }
    if (is_whole(request)) {
      ++requests_;
      const int now = ++at_once_;
      for (int most = max_at_once_; now > most && !max_at_once_.compare_exchange_weak(most, now);)
        ;
      const std::string bytes = answer_(request);
      --at_once_;
      std::size_t sent = 0;
      while (sent < bytes.size()) {
        const ssize_t count =
            send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
      }
    }
    close(connection);
  }

  static bool is_whole(const std::string& request) {
    const std::size_t head = request.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::size_t at = request.find("Content-Length: ");
    const std::size_t length =
        at == std::string::npos ? 0 : std::stoul(request.substr(at + 16, request.find('\r', at)));
    return request.size() >= head + 4 + length;
  }

  answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> requests_ = 0;
  std::atomic<int> at_once_ = 0;
  std::atomic<int> max_at_once_ = 0;
  std::thread acceptor_;
  std::mutex lock_;
  std::vector<std::thread> connections_;
};

}  // namespace hone::testing_support
