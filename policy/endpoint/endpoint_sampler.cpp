#include "policy/endpoint/endpoint_sampler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "policy/endpoint/endpoint_check.hpp"
#include "policy/endpoint/endpoint_request.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr double max_pause_s = 60;
constexpr double max_asked_pause_s = 3600;
constexpr std::chrono::minutes report_interval{1};  // of failures for the same reason
constexpr std::chrono::minutes busy_limit{30};      // of a server that asks for pauses
constexpr int max_tries = 10;                       // of one sample
constexpr double priced_tokens = 1e6;
constexpr std::chrono::milliseconds step_wait{100};

steady::duration seconds(double s) {
  return std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(s));
}

// One completion that is wanted.
struct wanted_sample {
  std::uint64_t ticket = 0;
  std::uint32_t index = 0;
  completion_request request;
  int failures = 0;
  steady::time_point began{};  // of its last request
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
  steady::time_point failed_at{};  // when the last failure that counts was seen
  steady::time_point failing_since{};
  std::string reported{};  // the last reason of a failure that was logged
  steady::time_point reported_at{};
  std::int64_t failures = 0;  // in a row
  endpoint_usage usage{};
};

class endpoint_sampler final : public completion_sampler {
 public:
  endpoint_sampler(const std::map<std::string, endpoint_options>& endpoints,
                   const generation_options& generation,
                   std::function<void(const std::string&)> log)
      : generation_(generation), log_(log ? std::move(log) : [](const std::string&) {}) {
    const auto keys = read_endpoint_keys(endpoints);
    for (const auto& [name, options] : endpoints) {
      endpoints_.push_back(std::make_unique<endpoint>(endpoint{name, options, keys.at(name)}));
      connections_ += static_cast<std::size_t>(options.concurrency);
    }
    try {
      for (const auto& one : endpoints_) {
        for (std::int64_t i = 0; i < one->options.concurrency; ++i) {
          http_client& client = *clients_.emplace_back(std::make_unique<http_client>(stops_));
          threads_.emplace_back([this, &at = *one, &client] { serve(at, client); });
        }
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  ~endpoint_sampler() override { stop(); }
  endpoint_sampler(const endpoint_sampler&) = delete;
  endpoint_sampler& operator=(const endpoint_sampler&) = delete;

  void load(const std::filesystem::path& /*checkpoint*/, std::uint64_t version) override {
    version_ = version;
  }
  void take(const decoder_weights& /*weights*/, std::uint64_t version) override {
    version_ = version;
  }

  void submit(const prompt& asked) override {
    const completion_request request{asked.text, generation_.max_new_tokens,
                                     asked.is_greedy ? 0 : generation_.sampling.temperature,
                                     generation_.sampling.top_p};
    const std::lock_guard hold(lock_);
    open_[asked.ticket] = {std::vector<sample>(asked.samples), asked.samples};
    for (std::uint32_t i = 0; i < asked.samples; ++i)
      waiting_.push_back({asked.ticket, i, request});
    unfinished_ += asked.samples;
    changed_.notify_all();
  }

  std::vector<finished_prompt> step() override {
    std::unique_lock hold(lock_);
    answered_.wait_for(hold, step_wait, [&] { return !done_.empty() || is_stuck(); });
    if (done_.empty() && is_stuck()) throw policy_error(no_endpoint_left());
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
  std::map<std::string, endpoint_usage> usage() const override {
    const std::lock_guard hold(lock_);
    std::map<std::string, endpoint_usage> all;
    for (const auto& one : endpoints_) all[one->name] = one->usage;
    return all;
  }

 private:
  struct open_prompt {
    std::vector<sample> samples;
    std::uint32_t missing = 0;  // samples without an answer
  };

  bool has_endpoint() const {
    return std::any_of(endpoints_.begin(), endpoints_.end(),
                       [](const auto& one) { return one->given_up.empty(); });
  }
  // True if samples wait that no endpoint will take. Requests that are under way may still bring
  // answers.
  bool is_stuck() const { return !waiting_.empty() && under_way_ == 0 && !has_endpoint(); }
  std::string no_endpoint_left() const {
    std::string said = "no endpoint is left to write:";
    for (const auto& one : endpoints_) said += "\n  " + one->name + " " + one->given_up;
    return said;
  }

  void stop() {
    {
      const std::lock_guard hold(lock_);
      stops_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The work of one connection.
  void serve(endpoint& at, http_client& client) {
    while (auto wanted = take(at)) {
      endpoint_reply found = request_completion(at.options, at.key, client, wanted->request);
      if (stops_) return;
      settle(at, std::move(*wanted), std::move(found));
    }
  }

  void settle(endpoint& at, wanted_sample wanted, endpoint_reply found) {
    const std::lock_guard hold(lock_);
    --under_way_;
    ++at.usage.requests;
    if (auto* answer = std::get_if<completion_answer>(&found.read)) {
      at.failures = 0;
      at.usage.answer_s += std::chrono::duration<double>(steady::now() - wanted.began).count();
      count_tokens(at, answer->used);
      if (!answer->without_text.empty())
        report(at, "answers without text, which is a sample without a program",
               ": " + answer->without_text);
      put(wanted, std::move(*answer));
    } else {
      fail(at, std::move(wanted), std::get<completion_failure>(found.read), found.asked_pause_s);
    }
    changed_.notify_all();
    answered_.notify_all();
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
    wanted.began = steady::now();
    ++under_way_;
    return wanted;
  }

  void count_tokens(endpoint& at, const used_tokens& used) {
    const auto asked = static_cast<double>(used.prompt);
    const auto written = static_cast<double>(used.answer);
    at.usage.prompt_tokens += asked;
    at.usage.answer_tokens += written;
    at.usage.cost +=
        (at.options.prompt_price * asked + at.options.answer_price * written) / priced_tokens;
    tokens_ += static_cast<std::uint64_t>(used.answer);
    if (at.options.token_budget > 0 && at.usage.prompt_tokens + at.usage.answer_tokens >=
                                           static_cast<double>(at.options.token_budget))
      give_up(at, "has spent its budget of " + std::to_string(at.options.token_budget) + " tokens");
  }

  // Puts an answer in its place, and ends the prompt with its last one.
  void put(const wanted_sample& wanted, completion_answer answer) {
    const auto open = open_.find(wanted.ticket);
    sample& place = open->second.samples.at(wanted.index);
    place.text = std::move(answer.text);
    place.how.truncated = answer.truncated;
    --unfinished_;
    if (--open->second.missing > 0) return;
    done_.push_back({wanted.ticket, std::move(open->second.samples)});
    open_.erase(open);
  }

  void fail(endpoint& at, wanted_sample wanted, const completion_failure& failure,
            std::optional<double> asked_pause_s) {
    ++at.usage.failures;
    count_tokens(at, failure.used);
    const auto began = wanted.began;
    if (failure.kind == failure_kind::passing) ++wanted.failures;
    if (failure.kind == failure_kind::of_request || wanted.failures >= max_tries) {
      log_("endpoint " + at.name + " " + failure.why + "; this sample stays empty");
      put(wanted, {});
    } else {
      waiting_.push_front(std::move(wanted));
    }
    if (failure.kind == failure_kind::lasting) return give_up(at, failure.why);
    if (!at.given_up.empty()) return;
    // Requests that were under way at the last failure tell nothing new, however long they take.
    if (failure.kind != failure_kind::of_request && began <= at.failed_at) return;
    const auto now = steady::now();
    at.failed_at = now;
    const double doubled =
        at.options.first_pause_s * std::pow(2.0, static_cast<double>(at.failures));
    if (++at.failures == 1) at.failing_since = now;
    // A server that asks for a pause is there: it is busy, or its limit of requests is reached.
    if (at.failures > at.options.retries && !(asked_pause_s && now - at.failing_since < busy_limit))
      return give_up(at, failure.why + " (" + std::to_string(at.failures) +
                             " times in a row; endpoint." + at.name + ".retries is " +
                             std::to_string(at.options.retries) + ")");
    if (failure.kind == failure_kind::of_request)
      return;  // it is there, so there is no need to wait
    const double pause = asked_pause_s ? std::min(*asked_pause_s, max_asked_pause_s)
                                       : std::min(doubled, max_pause_s);
    at.pause_end = now + seconds(pause);
    report(at, failure.why,
           "; the next request follows after " +
               std::to_string(static_cast<int>(std::ceil(pause))) + " s");
  }

  // Logs a problem, unless the same one was logged a moment ago.
  void report(endpoint& at, const std::string& why, const std::string& more) {
    const auto now = steady::now();
    if (why == at.reported && now - at.reported_at < report_interval) return;
    at.reported = why;
    at.reported_at = now;
    log_("endpoint " + at.name + " " + why + more);
  }

  void give_up(endpoint& at, const std::string& why) {
    if (!at.given_up.empty()) return;
    at.given_up = why;
    log_("endpoint " + at.name + " " + why + "; it is asked no more");
    changed_.notify_all();
    answered_.notify_all();
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
  std::map<std::uint64_t, open_prompt> open_;  // by ticket
  std::vector<finished_prompt> done_;
  std::size_t unfinished_ = 0;
  std::size_t under_way_ = 0;  // requests
  std::uint64_t tokens_ = 0;
  std::atomic<bool> stops_ = false;
  std::vector<std::unique_ptr<http_client>> clients_;  // one for each thread
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<completion_sampler> make_endpoint_sampler(
    const std::map<std::string, endpoint_options>& endpoints, const generation_options& generation,
    std::function<void(const std::string&)> log) {
  return std::make_unique<endpoint_sampler>(endpoints, generation, std::move(log));
}

}  // namespace hone
