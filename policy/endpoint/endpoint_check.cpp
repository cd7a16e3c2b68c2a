#include "policy/endpoint/endpoint_check.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "policy/endpoint/endpoint_request.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;
using seconds_type = std::chrono::duration<double>;

constexpr double max_check_s = 60;
constexpr std::int64_t tokens_of_check = 16;
constexpr int tries_of_check = 3;
constexpr double min_requests_per_minute = 1.0 / (24 * 60);
constexpr double pause_of_check_s = 1;

}  // namespace

std::map<std::string, std::string> read_endpoint_keys(
    const std::map<std::string, endpoint_options>& endpoints) {
  std::map<std::string, std::string> keys;
  for (const auto& [name, options] : endpoints) {
    const auto refuse = [&name = name](const std::string& key, const std::string& problem) {
      throw policy_error("endpoint." + name + "." + key + ": " + problem);
    };
    const auto url = parse_url(options.url);
    if (!url || (url->scheme != "http" && url->scheme != "https"))
      refuse("url", "is '" + options.url + "', expected http://... or https://...");
    if (url->has_user) refuse("url", "holds a user or a password; use key");
    if (options.model.empty()) refuse("model", "is missing");
    if (options.requests_per_minute > 0 && options.requests_per_minute < min_requests_per_minute)
      refuse("requests_per_minute", "is less than one a day; 0 for no limit");
    if (options.api != "chat" && options.api != "completions")
      refuse("api", "is '" + options.api + "', expected chat or completions");
    try {
      request_body(options, {});
    } catch (const policy_error& e) {
      refuse("extra", e.what());
    }
    std::string& key = keys[name];
    if (options.key.empty()) continue;
    const char* const value = std::getenv(options.key.c_str());
    if (value == nullptr || *value == '\0')
      refuse("key", "the environment variable " + options.key + " is not set");
    if (url->scheme == "http" && !url->is_this_machine())
      refuse("key", "would travel to " + url->host + " in plain HTTP; use https");
    key = value;
  }
  if (keys.empty())
    throw policy_error("policy.kind is 'endpoint', and no [endpoint.NAME] is there");
  return keys;
}

std::string check_endpoint(const std::string& name, endpoint_options options,
                           const std::string& key) {
  const std::atomic<bool> never = false;
  http_client client(never);
  options.timeout_s = std::min(options.timeout_s, max_check_s);
  const auto end = steady::now() + seconds_type(max_check_s);
  steady::time_point begin;
  for (int tries = 1;; ++tries) {
    begin = steady::now();
    const endpoint_reply found =
        request_completion(options, key, client, {"Say hello.", tokens_of_check, 1, 1});
    const auto* failure = std::get_if<completion_failure>(&found.read);
    if (failure == nullptr) break;
    const double pause_s = found.asked_pause_s.value_or(pause_of_check_s);
    const bool may_pass =
        failure->kind == failure_kind::away || failure->kind == failure_kind::passing;
    if (may_pass && tries < tries_of_check && steady::now() + seconds_type(pause_s) < end) {
      std::this_thread::sleep_for(seconds_type(pause_s));
      continue;
    }
    const std::string problem = "endpoint." + name + ": " + options.url + " " + failure->why;
    if (!may_pass || !found.asked_pause_s) throw policy_error(problem);
    return problem + ", and asks for a pause of " + std::to_string(std::llround(pause_s)) +
           " s; a run waits, for up to half an hour";
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), ": answers in %.1f s",
                std::chrono::duration<double>(steady::now() - begin).count());
  return "endpoint " + name + text.data();
}

}  // namespace hone
