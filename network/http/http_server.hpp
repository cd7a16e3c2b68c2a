#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "network/address.hpp"

namespace hone {

struct http_request {
  std::string method;                        // "GET"
  std::string path;                          // decoded, without the query: "/v1/tasks"
  std::map<std::string, std::string> query;  // decoded; of a repeated name, the last value
  std::string token;                         // of "Authorization: Bearer TOKEN"; empty: none
  std::string host;                          // as the client calls the server, with the port
  std::string content_type;                  // without parameters, in small letters
  // The fields of the header by their names in small letters; of a repeated name, the last value.
  std::map<std::string, std::string> fields;
  std::string body;
};

struct http_response {
  unsigned status = 200;
  std::string body;  // JSON, unless the headers have a "Content-Type"
  std::vector<std::pair<std::string, std::string>> headers{};
};

namespace http_parts {
struct state;
}

// Serves HTTP/1.1, over TLS or in plain text, on threads that it starts. The limits hold for every
// client: one that is slow or sends too much is cut off, and of too many connections, the one that
// has been idle longest is closed.
class http_server {
 public:
  struct options {
    network_address listen;
    std::filesystem::path socket{};       // a Unix socket for this user alone; empty: `listen`
    std::filesystem::path certificate{};  // PEM, with its chain; empty: without TLS
    std::filesystem::path key{};
    unsigned threads = 2;
    std::size_t max_body = std::size_t{4} << 20U;
    std::size_t max_connections = 1024;
    std::chrono::seconds idle_limit{60};  // until the header of the next request is complete
    std::chrono::seconds send_limit{20};  // until its body is, and for an answer to be taken
  };
  // Answers a request, from any thread; later calls for the same request have no effect.
  using reply = std::function<void(http_response)>;
  // Called on the server's threads; must neither block nor throw.
  using handler = std::function<void(http_request, reply)>;

  // Answers a message of a WebSocket, from any thread and once; an empty answer closes it.
  using message_reply = std::function<void(std::string)>;
  // Called with each message, after the answer to the one before.
  using conversation = std::function<void(std::string message, message_reply)>;
  // Called with a request for a WebSocket. Null: the request is handled like any other.
  using opener = std::function<conversation(const http_request&)>;

  // Listens from now on. Throws network_error.
  http_server(options chosen, handler handle, opener open = nullptr);
  // Closes all connections.
  ~http_server();

  // Returns where it listens, with the port that it has taken if it was asked for any. It means
  // nothing for a Unix socket.
  const network_address& address() const;

 private:
  std::shared_ptr<http_parts::state> state_;
};

}  // namespace hone
