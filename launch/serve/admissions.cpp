#include "launch/serve/admissions.hpp"

#include <algorithm>

#include "launch/serve/judge_request.hpp"

namespace hone {

void admissions::admit(const std::string& client, std::size_t programs) {
  const std::lock_guard hold(lock_);
  const auto [entry, is_new] = clients_.try_emplace(client);
  account& of = entry->second;
  const auto refuse = [](const std::string& why) { throw bad_request(429, "busy", why); };
  if (waiting_ + programs > limits_.max_programs)
    refuse("the server has " + std::to_string(waiting_) +
           " programs that wait (serve.max_programs)");
  if (of.waiting + programs > limits_.client_programs)
    refuse("this client has " + std::to_string(of.waiting) +
           " programs that wait (serve.client_programs)");
  if (limits_.client_rate > 0) {
    const auto now = clock::now();
    const double rate = limits_.client_rate;
    const double passed =
        std::chrono::duration<double, std::ratio<60>>(now - of.counted_at).count();
    if (is_new) of.allowance = rate;
    of.allowance = std::min(rate, of.allowance + passed * rate);
    of.counted_at = now;
    if (of.allowance < static_cast<double>(programs))
      refuse("this client has used up its programs per minute (serve.client_rate)");
    of.allowance -= static_cast<double>(programs);
  }
  of.waiting += programs;
  waiting_ += programs;
}

void admissions::release(const std::string& client, std::size_t programs) {
  const std::lock_guard hold(lock_);
  waiting_ -= programs;
  clients_[client].waiting -= programs;
}

std::size_t admissions::waiting() const {
  const std::lock_guard hold(lock_);
  return waiting_;
}

}  // namespace hone
