#include "actors/fetcher.hpp"

#include <algorithm>
#include <utility>

#include "actors/timeouts.hpp"
#include "network/thread_priority.hpp"
#include "policy/training/checkpoint.hpp"

namespace hone {
namespace {

// A comparison returns to versions; a copy is read once, soon after it is complete.
constexpr std::size_t max_copies = 6;

caf::error refusal(const std::string& reason) {
  return caf::make_error(caf::sec::runtime_error, reason);
}

}  // namespace

caf::result<std::string> fetcher_state::want(std::uint64_t version, bool is_pinned) {
  const auto there = std::find_if(copied.begin(), copied.end(),
                                  [&](const copied_version& one) { return one.number == version; });
  if (there != copied.end()) {
    std::rotate(there, there + 1, copied.end());
    return copied.back().folder.string();
  }
  if (!is_pinned) {
    if (version < newest) return refusal("a later version is wanted");
    newest = version;
    std::vector<std::uint64_t> overtaken;
    for (const auto& [other, one] : wanted) {
      const bool has_begun = copy != nullptr && other == copying;
      if (other < version && !one.is_pinned && !has_begun) overtaken.push_back(other);
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
  if (wanted.empty()) return;
  if (copy == nullptr) {
    const auto latest = std::find_if(wanted.rbegin(), wanted.rend(),
                                     [](const auto& entry) { return !entry.second.is_pinned; });
    copying = latest != wanted.rend() ? latest->first : wanted.begin()->first;
    copy = std::make_unique<folder_copy>(options.sources, checkpoint_name(copying), options.cache);
  }
  try {
    const activity::span busy(counts, "copy");
    const std::uint64_t before = copy->bytes_copied();
    const bool is_complete = copy->proceed();
    counts.processed(copy->bytes_copied() - before);
    is_failing = false;
    if (is_complete) answer(copying, copy->folder());
    schedule_tick();
  } catch (const connection_failed& e) {
    counts.failed();
    const auto now = std::chrono::steady_clock::now();
    if (!std::exchange(is_failing, true)) failing_since = now;
    if (now - failing_since > timeouts::fetch_patience) {
      is_failing = false;
      refuse(copying, e.what());
    }
    schedule_tick(timeouts::fetch_retry);
  } catch (const std::exception& e) {
    counts.failed();
    refuse(copying, e.what());
    schedule_tick();
  }
}

void fetcher_state::answer(std::uint64_t version, const std::filesystem::path& folder) {
  try {
    if (options.prepare) options.prepare(folder);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    throw;
  }
  copied.push_back({version, folder});
  counts.set_number("version", static_cast<double>(version));
  bytes_of_nodes += copy->bytes_of_nodes();
  counts.set_number("bytes_of_nodes", static_cast<double>(bytes_of_nodes));
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
  while (copied.size() > max_copies) {
    std::filesystem::remove_all(copied.front().folder, ignored);
    copied.pop_front();
  }
}

void fetcher_state::clear_cache() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options.cache, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoints-") || name.find(unfinished_mark) != std::string::npos)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

fetcher_actor::behavior_type fetcher_behavior(fetcher_actor::stateful_pointer<fetcher_state> self,
                                              std::string name, fetcher_options options) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.counts = activity(std::move(name), "fetcher");
  if (s.options.has_own_thread) let_messages_pass(thread_work::strangers_and_files);
  s.clear_cache();
  return {
      [&s](fetch_atom, std::uint64_t version, bool is_pinned) {
        return s.want(version, is_pinned);
      },
      [&s](tick_atom) { s.proceed(); },
      [&s](status_atom) { return s.counts.report(s.wanted.size(), s.copy ? 1 : 0); },
  };
}

}  // namespace hone
