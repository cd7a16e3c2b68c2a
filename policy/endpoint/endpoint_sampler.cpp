#include "policy/endpoint/endpoint_sampler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "messages/plain_text.hpp"
#include "policy/endpoint/completion_protocol.hpp"
#include "policy/endpoint/http_client.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t most_answer_bytes = 8U << 20U;
constexpr double longest_pause_s = 60;
constexpr int most_tries = 10;  // of one sample
constexpr std::chrono::milliseconds step_wait{100};

steady::duration seconds(double s) {
  return std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(s));
}

// Returns the host of an URL, without the port.
std::string host_of(const std::string& url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string::npos) return "";
  std::string host = url.substr(begin + 3, url.find('/', begin + 3) - begin - 3);
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

// One completion that is wanted.
struct wanted_sample {
  std::uint64_t ticket = 0;
  std::uint32_t index = 0;
  completion_request request;
  int failures = 0;
};

// One server, as its threads share it. All members behind `options` are guarded by the sampler's
// lock.
struct endpoint {
  std::string name;
  endpoint_options options;
  std::string key;

  std::string given_up{};          // why; empty while it is in use
  steady::time_point pause_end{};  // of the pause after a failure
  steady::time_point free_at{};    // when the limit of requests allows the next one
  std::int64_t failures = 0;       // in a row
  std::int64_t charged_tokens = 0;
};

class endpoint_sampler final : public completion_sampler {
 public:
  endpoint_sampler(const std::map<std::string, endpoint_options>& endpoints,
                   const generation_options& generation,
                   std::function<void(const std::string&)> log)
      : generation_(generation), log_(std::move(log)) {
    const auto keys = read_endpoint_keys(endpoints);
    for (const auto& [name, options] : endpoints) {
      endpoints_.push_back(std::make_unique<endpoint>(endpoint{name, options, keys.at(name)}));
      connections_ += static_cast<std::size_t>(options.concurrency);
    }
    for (const auto& one : endpoints_) {
      for (std::int64_t i = 0; i < one->options.concurrency; ++i)
        threads_.emplace_back([this, &at = *one] { serve(at); });
    }
  }
  ~endpoint_sampler() override {
    {
      const std::lock_guard hold(lock_);
      stops_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  endpoint_sampler(const endpoint_sampler&) = delete;
  endpoint_sampler& operator=(const endpoint_sampler&) = delete;

  void load(const std::filesystem::path& /*checkpoint*/, std::uint64_t version) override {
    version_ = version;
  }

  void submit(const prompt& asked) override {
    const completion_request request{asked.text, generation_.max_new_tokens,
                                     asked.is_greedy ? 0 : generation_.temperature,
                                     generation_.top_p};
    const std::lock_guard hold(lock_);
    open_[asked.ticket].resize(asked.samples);
    missing_[asked.ticket] = asked.samples;
    for (std::uint32_t i = 0; i < asked.samples; ++i)
      waiting_.push_back({asked.ticket, i, request});
    unfinished_ += asked.samples;
    changed_.notify_all();
  }

  std::vector<finished_prompt> step() override {
    std::unique_lock hold(lock_);
    answered_.wait_for(hold, step_wait, [&] { return !done_.empty() || !has_endpoint(); });
    if (done_.empty() && !has_endpoint() && unfinished_ > 0) throw policy_error(no_endpoint_left());
    return std::exchange(done_, {});
  }

  std::uint64_t version() const override { return version_; }
  std::size_t unfinished_samples() const override {
    const std::lock_guard hold(lock_);
    return unfinished_;
  }
  std::size_t free_slots() const override {
    const std::lock_guard hold(lock_);
    return connections_ > unfinished_ ? connections_ - unfinished_ : 0;
  }
  std::uint64_t tokens_generated() const override {
    const std::lock_guard hold(lock_);
    return tokens_;
  }

 private:
  bool has_endpoint() const {
    return std::any_of(endpoints_.begin(), endpoints_.end(),
                       [](const auto& one) { return one->given_up.empty(); });
  }
  std::string no_endpoint_left() const {
    std::string said = "no endpoint is left to write:";
    for (const auto& one : endpoints_) said += "\n  " + one->name + " " + one->given_up;
    return said;
  }

  // The work of one connection.
  void serve(endpoint& at) {
    http_client client(stops_);
    while (const auto wanted = take(at)) {
      const http_reply reply =
          client.post(request_url(at.options), at.key, request_body(at.options, wanted->request),
                      at.options.timeout_s, most_answer_bytes);
      if (stops_) return;
      if (!reply.problem.empty()) {
        fail(at, *wanted, {"does not answer: " + plain_text(reply.problem)}, std::nullopt);
        continue;
      }
      auto read = read_answer(reply.status, reply.body, wanted->request.prompt.size());
      if (auto* answer = std::get_if<completion_answer>(&read)) {
        finish(at, *wanted, std::move(*answer));
      } else {
        fail(at, *wanted, std::get<completion_failure>(read), reply.retry_after_s);
      }
    }
  }

  // Waits until the endpoint may begin a request and a sample waits for one. Returns nullopt if the
  // connection is to end.
  std::optional<wanted_sample> take(endpoint& at) {
    std::unique_lock hold(lock_);
    for (;;) {
      if (stops_ || !at.given_up.empty()) return std::nullopt;
      const auto begin = std::max(at.free_at, at.pause_end);
      if (waiting_.empty()) {
        changed_.wait(hold);
      } else if (steady::now() < begin) {
        changed_.wait_until(hold, begin);
      } else {
        break;
      }
    }
    if (at.options.requests_per_minute > 0)
      at.free_at = steady::now() + seconds(60 / at.options.requests_per_minute);
    wanted_sample wanted = std::move(waiting_.front());
    waiting_.pop_front();
    return wanted;
  }

  void finish(endpoint& at, const wanted_sample& wanted, completion_answer answer) {
    const std::lock_guard hold(lock_);
    at.failures = 0;
    count_tokens(at, answer);
    put(wanted, std::move(answer));
  }

  void count_tokens(endpoint& at, const completion_answer& answer) {
    at.charged_tokens += answer.charged_tokens;
    tokens_ += static_cast<std::uint64_t>(answer.answer_tokens);
    if (at.options.token_budget > 0 && at.charged_tokens >= at.options.token_budget)
      give_up(at, "has spent its budget of " + std::to_string(at.options.token_budget) + " tokens");
  }

  // Puts an answer in its place, and ends the prompt with its last one.
  void put(const wanted_sample& wanted, completion_answer answer) {
    sample& place = open_.at(wanted.ticket).at(wanted.index);
    place.text = std::move(answer.text);
    place.how.truncated = answer.truncated;
    --unfinished_;
    if (--missing_.at(wanted.ticket) > 0) return;
    done_.push_back({wanted.ticket, std::move(open_.at(wanted.ticket))});
    open_.erase(wanted.ticket);
    missing_.erase(wanted.ticket);
    answered_.notify_all();
  }

  void fail(endpoint& at, wanted_sample wanted, const completion_failure& failure,
            std::optional<double> asked_pause_s) {
    const std::lock_guard hold(lock_);
    const auto now = steady::now();
    const std::string why = without_key(failure.why, at.key);
    if (failure.kind == failure_kind::of_request || ++wanted.failures >= most_tries) {
      if (log_) log_("endpoint " + at.name + " " + why + "; this sample stays empty");
      put(wanted, {});
    } else {
      waiting_.push_front(std::move(wanted));
    }
    if (failure.kind == failure_kind::lasting) {
      give_up(at, why);
    } else if (at.given_up.empty() && now >= at.pause_end) {
      // Requests that were under way as the pause began tell nothing new.
      const double pause =
          std::min(longest_pause_s,
                   at.options.first_pause_s * std::pow(2.0, static_cast<double>(at.failures)));
      if (++at.failures > at.options.retries) {
        give_up(at, why + " (" + std::to_string(at.failures) + " times in a row)");
      } else {
        at.pause_end = now + seconds(asked_pause_s.value_or(pause));
      }
    }
    changed_.notify_all();
  }

  void give_up(endpoint& at, const std::string& why) {
    if (!at.given_up.empty()) return;
    at.given_up = why;
    if (log_) log_("endpoint " + at.name + " " + why + "; it is asked no more");
    changed_.notify_all();
    answered_.notify_all();
  }

  static std::string without_key(std::string text, const std::string& key) {
    if (key.empty()) return text;
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
      text.replace(at, key.size(), "***");
    return text;
  }

  const generation_options generation_;
  const std::function<void(const std::string&)> log_;
  std::uint64_t version_ = 0;

  mutable std::mutex lock_;
  std::condition_variable changed_;   // a sample waits, an endpoint is given up, or the end
  std::condition_variable answered_;  // a prompt is finished, or an endpoint is given up
  std::vector<std::unique_ptr<endpoint>> endpoints_;
  std::size_t connections_ = 0;
  std::deque<wanted_sample> waiting_;
  std::map<std::uint64_t, std::vector<sample>> open_;  // by ticket
  std::map<std::uint64_t, std::uint32_t> missing_;     // answers, by ticket
  std::vector<finished_prompt> done_;
  std::size_t unfinished_ = 0;
  std::uint64_t tokens_ = 0;
  std::atomic<bool> stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::map<std::string, std::string> read_endpoint_keys(
    const std::map<std::string, endpoint_options>& endpoints) {
  std::map<std::string, std::string> keys;
  for (const auto& [name, options] : endpoints) {
    const auto refuse = [&name = name](const std::string& key, const std::string& problem) {
      throw policy_error("endpoint." + name + "." + key + ": " + problem);
    };
    const bool is_plain = options.url.starts_with("http://");
    if (!is_plain && !options.url.starts_with("https://"))
      refuse("url", "is '" + options.url + "', expected http://... or https://...");
    if (options.model.empty()) refuse("model", "is missing");
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
    if (is_plain && !is_this_machine(host_of(options.url)))
      refuse("key", "would travel to " + host_of(options.url) + " in plain HTTP; use https");
    key = value;
  }
  if (keys.empty())
    throw policy_error("policy.kind is 'endpoint', and no [endpoint.NAME] is there");
  return keys;
}

std::unique_ptr<completion_sampler> make_endpoint_sampler(
    const std::map<std::string, endpoint_options>& endpoints, const generation_options& generation,
    std::function<void(const std::string&)> log) {
  return std::make_unique<endpoint_sampler>(endpoints, generation, std::move(log));
}

}  // namespace hone
