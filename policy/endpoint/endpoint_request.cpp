#include "policy/endpoint/endpoint_request.hpp"

#include <exception>

#include "messages/plain_text.hpp"

namespace hone {
namespace {

constexpr std::size_t max_answer_bytes = 8U << 20U;

std::string without_key(std::string text, const std::string& key) {
  for (std::size_t at = 0; !key.empty() && (at = text.find(key, at)) != std::string::npos; at += 3)
    text.replace(at, key.size(), "***");
  return text;
}

}  // namespace

endpoint_reply request_completion(const endpoint_options& options, const std::string& key,
                                  http_client& client, const completion_request& what) {
  http_reply reply;
  try {
    reply = client.post(request_url(options), key, request_body(options, what), options.timeout_s,
                        max_answer_bytes);
  } catch (const std::exception& e) {
    reply.problem = e.what();
  }
  if (!reply.problem.empty()) {
    return {completion_failure{"does not answer: " + plain_text(reply.problem),
                               reply.is_away ? failure_kind::away : failure_kind::passing},
            {}};
  }
  return {read_answer(reply.status, without_key(reply.body, key), what.prompt.size()),
          reply.retry_after_s};
}

}  // namespace hone
