#include "policy/endpoint/http_client.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <mutex>
#include <stdexcept>

namespace hone {
namespace {

struct free_list {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using header_list = std::unique_ptr<curl_slist, free_list>;

void append(header_list& headers, const std::string& line) {
  headers.reset(curl_slist_append(headers.release(), line.c_str()));
}

// Where the bytes of an answer go.
struct receiver {
  std::string bytes;
  std::size_t most = 0;
  bool is_too_long = false;
};

std::size_t receive(const char* bytes, std::size_t /*one*/, std::size_t count, void* into) {
  receiver& to = *static_cast<receiver*>(into);
  if (to.bytes.size() + count > to.most) {
    to.is_too_long = true;
    return 0;  // ends the transfer
  }
  to.bytes.append(bytes, count);
  return count;
}

int shall_end(void* stops, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stops)->load() ? 1 : 0;
}

}  // namespace

struct http_client::state {
  CURL* handle = nullptr;
  const std::atomic<bool>* stops = nullptr;
};

bool url_parts::is_this_machine() const {
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  return host == "localhost" || host == "[::1]";
}

std::optional<url_parts> parse_url(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, 0) != CURLUE_OK) return std::string();
    std::string copy = text;
    curl_free(text);
    return copy;
  };
  return url_parts{part(CURLUPART_SCHEME), part(CURLUPART_HOST),
                   !part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty()};
}

http_client::http_client(const std::atomic<bool>& stops) : state_(std::make_unique<state>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  state_->handle = curl_easy_init();
  state_->stops = &stops;
  if (state_->handle == nullptr) throw std::runtime_error("libcurl cannot be initialized");
}

http_client::~http_client() { curl_easy_cleanup(state_->handle); }

http_reply http_client::post(const std::string& url, const std::string& key,
                             const std::string& body, double timeout_s, std::size_t max_bytes) {
  CURL* const curl = state_->handle;
  curl_easy_reset(curl);  // connections are kept
  receiver received{{}, max_bytes, false};
  header_list headers;
  append(headers, "Content-Type: application/json");
  append(headers, "Expect:");  // some servers do not know what 100-continue is
  if (!key.empty()) append(headers, "Authorization: Bearer " + key);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  const auto parts = parse_url(url);
  if (parts && parts->is_this_machine()) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // other threads exist
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_s * 1000));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, shall_end);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, state_->stops);
  const CURLcode ended = curl_easy_perform(curl);
  http_reply reply;
  if (ended != CURLE_OK) {
    reply.problem = received.is_too_long
                        ? "answers with more than " + std::to_string(max_bytes) + " bytes"
                        : curl_easy_strerror(ended);
    reply.is_away = ended == CURLE_COULDNT_CONNECT || ended == CURLE_COULDNT_RESOLVE_HOST;
    return reply;
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
  curl_off_t wait = 0;
  if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    reply.retry_after_s = static_cast<double>(wait);
  reply.body = std::move(received.bytes);
  return reply;
}

}  // namespace hone
