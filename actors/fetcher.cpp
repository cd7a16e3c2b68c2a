#include "actors/fetcher.hpp"

#include <algorithm>
#include <utility>

#include "actors/timeouts.hpp"
#include "policy/checkpoint.hpp"

namespace hone {
namespace {

// A comparison returns to versions; a copy is read once, soon after it is complete.
constexpr std::size_t most_copies = 6;

caf::error refusal(const std::string& reason) {
  return caf::make_error(caf::sec::runtime_error, reason);
}

}  // namespace

caf::result<std::string> fetcher_state::want(std::uint64_t version, bool is_pinned) {
  if (const auto there = copied.find(version); there != copied.end()) return there->second.string();
  if (!is_pinned) {
    if (version < newest) return refusal("a later version is wanted");
    newest = version;
    std::vector<std::uint64_t> overtaken;
    for (const auto& [other, one] : wanted) {
      if (other < version && !one.is_pinned) overtaken.push_back(other);
    }
    for (const std::uint64_t other : overtaken) refuse(other, "a later version is wanted");
  }
  wanted_version& one = wanted[version];
  one.is_pinned = one.is_pinned || is_pinned;
  auto promise = self->make_response_promise<std::string>();
  one.promises.push_back(promise);
  schedule_tick();
  return promise;
}

void fetcher_state::schedule_tick(std::chrono::milliseconds delay) {
  if (std::exchange(tick_is_due, true)) return;
  if (delay.count() == 0) return self->send(self, tick_atom_v);
  self->delayed_send(self, delay, tick_atom_v);
}

void fetcher_state::proceed() {
  tick_is_due = false;
  if (wanted.empty()) return copy.reset();
  const auto latest = std::find_if(wanted.rbegin(), wanted.rend(),
                                   [](const auto& entry) { return !entry.second.is_pinned; });
  const std::uint64_t version = latest != wanted.rend() ? latest->first : wanted.begin()->first;
  if (copy == nullptr || copying != version) {
    copying = version;
    copy = std::make_unique<folder_copy>(options.connect, checkpoint_name(version), options.cache);
  }
  try {
    const activity::span busy(counts, "copy");
    const std::uint64_t before = copy->bytes_copied();
    const bool is_complete = copy->proceed();
    counts.processed(copy->bytes_copied() - before);
    is_failing = false;
    if (is_complete) answer(version, copy->folder());
    schedule_tick();
  } catch (const connection_failed& e) {
    counts.failed();
    const auto now = std::chrono::steady_clock::now();
    if (!std::exchange(is_failing, true)) failing_since = now;
    if (now - failing_since > timeouts::fetch_patience) refuse(version, e.what());
    schedule_tick(timeouts::fetch_retry);
  } catch (const std::exception& e) {
    counts.failed();
    refuse(version, e.what());
    schedule_tick();
  }
}

void fetcher_state::answer(std::uint64_t version, const std::filesystem::path& folder) {
  if (options.prepare) options.prepare(folder);
  copied[version] = folder;
  counts.set_number("version", static_cast<double>(version));
  for (auto& promise : wanted[version].promises) promise.deliver(folder.string());
  wanted.erase(version);
  copy.reset();
  delete_old_copies();
}

void fetcher_state::refuse(std::uint64_t version, const std::string& reason) {
  for (auto& promise : wanted[version].promises) promise.deliver(refusal(reason));
  wanted.erase(version);
  if (copying == version) copy.reset();
}

void fetcher_state::delete_old_copies() {
  std::error_code ignored;
  while (copied.size() > most_copies) {
    std::filesystem::remove_all(copied.begin()->second, ignored);
    copied.erase(copied.begin());
  }
}

fetcher_actor::behavior_type fetcher_behavior(fetcher_actor::stateful_pointer<fetcher_state> self,
                                              std::string name, fetcher_options options) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.counts = activity(std::move(name), "fetcher");
  if (s.options.has_own_thread) let_messages_pass();
  return {
      [&s](fetch_atom, std::uint64_t version, bool is_pinned) { return s.want(version, is_pinned); },
      [&s](tick_atom) { s.proceed(); },
      [&s](status_atom) { return s.counts.report(s.wanted.size(), s.copy ? 1 : 0); },
  };
}

}  // namespace hone
