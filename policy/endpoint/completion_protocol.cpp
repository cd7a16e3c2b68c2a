#include "policy/endpoint/completion_protocol.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "messages/json_depth.hpp"
#include "messages/plain_text.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t shown_bytes = 300;   // of an answer, in messages
constexpr std::size_t bytes_of_token = 4;  // about, where the server counts no tokens
constexpr double max_count = 1e15;         // of tokens

constexpr std::array<long, 3> refusing_statuses = {400, 413, 422};
constexpr std::array<long, 5> lasting_statuses = {401, 402, 403, 404, 405};
constexpr std::array<long, 6> away_statuses = {408, 429, 502, 503, 504, 529};

failure_kind kind_of(long status) {
  const auto is_among = [status](const auto& statuses) {
    return std::find(statuses.begin(), statuses.end(), status) != statuses.end();
  };
  if (is_among(refusing_statuses)) return failure_kind::of_request;
  if (is_among(away_statuses)) return failure_kind::away;
  const bool redirects = status >= 300 && status < 400;
  return redirects || is_among(lasting_statuses) ? failure_kind::lasting : failure_kind::passing;
}

std::string shown(const std::string& body) {
  return plain_text(body.size() > shown_bytes ? body.substr(0, shown_bytes) + "..." : body);
}

// Returns a discarded value for a body that is no JSON.
json parsed(const std::string& body) {
  return is_nested_too_deeply(body) ? json(json::value_t::discarded)
                                    : json::parse(body, nullptr, false);
}

// Returns the message of an error as servers write it, or the beginning of the body.
std::string error_text(const std::string& body) {
  const json answer = parsed(body);
  if (answer.is_object() && answer.contains("error")) {
    const json& error = answer["error"];
    if (error.is_string()) return shown(error.get<std::string>());
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      return shown(error["message"].get<std::string>());
  }
  return shown(body);
}

json value_at(const json& object, const char* key) {
  return object.is_object() ? object.value(key, json()) : json();
}

// Returns the text of a message, which is a string, a list of parts, or nothing.
std::string content_text(const json& content) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const json& part : content) {
    if (part.at("type") == "text") text += part.at("text").get<std::string>();
  }
  return text;
}

// Returns the tokens that an answer of the server counts, or about as many as `bytes` have.
std::int64_t count_in(const json& usage, const std::array<const char*, 2>& names,
                      std::size_t bytes) {
  for (const char* name : names) {
    const json count = value_at(usage, name);
    if (count.is_number() && count >= 1 && count < max_count)
      return static_cast<std::int64_t>(count.get<double>());
  }
  return static_cast<std::int64_t>(bytes / bytes_of_token);
}

}  // namespace

std::string request_url(const endpoint_options& options) {
  std::string url = options.url;
  while (url.ends_with('/')) url.pop_back();
  return url + (options.api == "chat" ? "/chat/completions" : "/completions");
}

std::string request_body(const endpoint_options& options, const completion_request& asked) {
  json body = {{"model", options.model},
               {"max_tokens", asked.max_new_tokens},
               {"temperature", asked.temperature},
               {"top_p", asked.top_p},
               {"stream", false}};
  if (options.api == "chat") {
    body["messages"] = json::array({{{"role", "user"}, {"content", asked.prompt}}});
  } else {
    body["prompt"] = asked.prompt;
  }
  if (!options.extra.empty()) {
    const json extra = json::parse(options.extra, nullptr, false);
    if (!extra.is_object()) throw policy_error("extra is no JSON object: " + options.extra);
    body.merge_patch(extra);
  }
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::variant<completion_answer, completion_failure> read_answer(long status,
                                                                const std::string& body,
                                                                std::size_t asked_bytes) {
  if (status != 200)
    return completion_failure{
        "answers with status " + std::to_string(status) + ": " + error_text(body), kind_of(status)};
  const json answer = parsed(body);
  const json usage = value_at(answer, "usage");
  completion_answer read;
  const auto count = [&](std::size_t answer_bytes) {
    used_tokens used{count_in(usage, {"prompt_tokens", "input_tokens"}, asked_bytes),
                     count_in(usage, {"completion_tokens", "output_tokens"}, answer_bytes)};
    const std::int64_t total = count_in(usage, {"total_tokens", "total_tokens"}, 0);
    used.answer = std::max(used.answer, total - used.prompt);
    return used;
  };
  try {
    const json& choice = answer.at("choices").at(0);
    const json message = value_at(choice, "message");
    read.text = message.is_object() ? content_text(value_at(message, "content"))
                                    : choice.at("text").get<std::string>();
    const json reason = value_at(choice, "finish_reason");
    if (!reason.is_null() && reason != "stop" && reason != "length")
      return completion_failure{"ends a completion with finish_reason " + shown(reason.dump()) +
                                    ", expected stop or length",
                                failure_kind::passing, count(read.text.size())};
    read.truncated = reason == "length";
    read.used = count(read.text.size());
    if (read.text.empty()) read.without_text = shown(choice.dump());
    return read;
  } catch (const json::exception&) {
    return completion_failure{"answers with a body that is not a completion: " + shown(body),
                              failure_kind::passing, count(body.size())};
  }
}

}  // namespace hone
