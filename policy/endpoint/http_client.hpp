#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace hone {

// What matters of an URL.
struct url_parts {
  std::string scheme;
  std::string host;
  bool has_user = false;  // a name or a password in front of the host
  // True for localhost and for loopback addresses.
  bool is_this_machine() const;
};
// Returns nullopt if the text is not a URL.
std::optional<url_parts> parse_url(const std::string& url);

// A server's response, or the reason why there is none.
struct http_reply {
  long status = 0;  // 0: no answer
  std::string body;
  std::string problem;   // if there is no answer, or not a whole one
  bool is_away = false;  // with a problem: there is no connection
  std::optional<double> retry_after_s;
};

// Posts JSON over HTTP and HTTPS by libcurl. Redirections are not followed, since a key would go
// along, and no proxy of the environment is used on the way to this machine. Must be used by one
// thread at a time.
class http_client {
 public:
  // `stops`: a request ends soon after this is set. It must outlive the client.
  explicit http_client(const std::atomic<bool>& stops);
  ~http_client();

  // Posts `body`, with a bearer `key` if that is not empty, and waits for the whole answer, for at
  // most `timeout_s`. An answer of more than `max_bytes` is a problem.
  http_reply post(const std::string& url, const std::string& key, const std::string& body,
                  double timeout_s, std::size_t max_bytes);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
