#pragma once

#include <optional>
#include <string>
#include <variant>

#include "policy/endpoint/completion_protocol.hpp"
#include "policy/endpoint/http_client.hpp"

namespace hone {

// The result of a request to an endpoint.
struct endpoint_reply {
  std::variant<completion_answer, completion_failure> read;
  std::optional<double> asked_pause_s{};  // the server asks for no request for this long
};

// Sends a request and reads the answer. Every problem is a completion_failure. A server may repeat
// the key, which reaches no message.
endpoint_reply request_completion(const endpoint_options& options, const std::string& key,
                                  http_client& client, const completion_request& what);

}  // namespace hone
