#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "policy/endpoint/endpoint_options.hpp"

namespace hone {

// OpenAI's interface for chats and completions, as far as servers share it. Pure functions.

struct completion_request {
  std::string prompt;
  std::int64_t max_new_tokens = 256;
  double temperature = 1;
  double top_p = 1;
};

// Returns where a request goes, and its body. Throws policy_error if `options.extra` is no JSON
// object.
std::string request_url(const endpoint_options& options);
std::string request_body(const endpoint_options& options, const completion_request& asked);

// Tokens that a request costs; estimated from bytes where the server does not say.
struct used_tokens {
  std::int64_t prompt = 0;
  std::int64_t answer = 0;
};

struct completion_answer {
  std::string text;
  bool truncated = false;      // the length limit has ended it
  std::string without_text{};  // if there is no text: the beginning of the choice, for a message
  used_tokens used{};
};

// Classes of failed responses.
enum class failure_kind {
  away,        // the server is not there or has no room: another try will help
  passing,     // another try may help
  of_request,  // the server does not take this request, such as one that is too long
  lasting,     // it would not take any: the key, the model or the address is wrong
};
struct completion_failure {
  std::string why;
  failure_kind kind = failure_kind::passing;
  used_tokens used{};  // a server charges for a completion that cannot be read, too
};

// Reads an answer with this status. `asked_bytes` is the length of the request's prompt. A key that
// is absent counts as null. A completion that ended for another reason than a stop or the length
// limit (a filter, a call of a tool, an error of the server) is a failure.
std::variant<completion_answer, completion_failure> read_answer(long status,
                                                                const std::string& body,
                                                                std::size_t asked_bytes);

}  // namespace hone
