#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "messages/record.hpp"

namespace hone {

// Jobs in the order in which they are handed out: those of a higher priority first; of equal
// priority, the clients take turns; of one client, first in, first out. front() and take_front()
// need a lane that is not empty.
template <class Job>
class fair_lane {
 public:
  void push_back(const Job& job) { jobs_of(job).push_back(job); }
  // For a job that was handed out before: it is the next one of its priority.
  void push_front(const Job& job) {
    jobs_of(job).push_front(job);
    turns& clients = by_priority_[job->getHeader().getPriority()];
    const auto found = find(clients, job);
    std::rotate(clients.begin(), found, found + 1);
  }
  bool empty() const { return by_priority_.empty(); }
  std::size_t size() const {
    std::size_t count = 0;
    for (const auto& [priority, clients] : by_priority_) {
      for (const auto& [client, jobs] : clients) count += jobs.size();
    }
    return count;
  }
  const Job& front() const { return by_priority_.begin()->second.front().second.front(); }
  Job take_front() {
    const auto highest = by_priority_.begin();
    turns& clients = highest->second;
    auto next = std::move(clients.front());
    clients.pop_front();
    Job job = std::move(next.second.front());
    next.second.pop_front();
    if (!next.second.empty()) clients.push_back(std::move(next));
    if (clients.empty()) by_priority_.erase(highest);
    return job;
  }
  template <class IsGone>
  void erase_if(const IsGone& is_gone) {
    for (auto& [priority, clients] : by_priority_) {
      for (auto& [client, jobs] : clients) std::erase_if(jobs, is_gone);
      std::erase_if(clients, [](const auto& one) { return one.second.empty(); });
    }
    std::erase_if(by_priority_, [](const auto& one) { return one.second.empty(); });
  }

 private:
  // The clients with their jobs, of which none are empty; the first one is next.
  using turns = std::deque<std::pair<std::string, std::deque<Job>>>;

  static auto find(turns& clients, const Job& job) {
    const auto client = view(job->getHeader().getClient());
    return std::find_if(clients.begin(), clients.end(),
                        [&](const auto& one) { return one.first == client; });
  }
  // Returns the jobs of the client, which get a new one.
  std::deque<Job>& jobs_of(const Job& job) {
    turns& clients = by_priority_[job->getHeader().getPriority()];
    const auto found = find(clients, job);
    if (found != clients.end()) return found->second;
    return clients.emplace_back(std::string(view(job->getHeader().getClient())), std::deque<Job>())
        .second;
  }

  std::map<std::uint8_t, turns, std::greater<>> by_priority_;
};

}  // namespace hone
