#include "actors/work_queue.hpp"

#include <caf/all.hpp>

#include <algorithm>

#include "actors/job_headers.hpp"
#include "messages/clock.hpp"

namespace hone {
namespace {

constexpr std::uint32_t last_attempt = 3;
constexpr std::uint32_t max_lost_nodes = 5;
// The device type of a worker that takes jobs of all types.
constexpr std::string_view every_type = "*";

}  // namespace

std::string first_device(const compile_job& /*job*/) { return {}; }
std::string first_device(const verify_job& /*job*/) { return {}; }
std::string first_device(const benchmark_job& job) {
  if (!job->hasFirst() || job->getFirst().getDevice().size() == 0) return {};
  const auto first = job->getFirst();
  return single_device(view(first.getNode()), view(first.getDevice()));
}

template <class Job>
bool work_queue_state<Job>::worker::serves(std::string_view device_type) const {
  return std::any_of(device_types.begin(), device_types.end(),
                     [&](const std::string& t) { return t == every_type || t == device_type; });
}

template <class Job>
bool work_queue_state<Job>::worker::has_job_of(std::string_view device_type) const {
  return std::any_of(in_flight.begin(), in_flight.end(), [&](const auto& entry) {
    return view(entry.second.job->getHeader().getDeviceType()) == device_type;
  });
}

template <class Job>
void work_queue_state<Job>::put(const Job& job) {
  const std::string device_type(view(job->getHeader().getDeviceType()));
  job_line<Job>& line = waiting[device_type];
  if (line.size() == 0) shares.begin_to_wait(device_type);
  line.push_back(job);
  hand_out(device_type);
}

template <class Job>
void work_queue_state<Job>::cancel(const std::set<measurement_id>& ids) {
  for (auto& [device_type, jobs] : waiting)
    jobs.erase_if([&](const Job& job) {
      return ids.contains(measurement_id(job->getHeader().getMeasurementId()));
    });
  for (const measurement_id& id : ids) lost_with_nodes.erase(id);
}

// Returns a worker that has a credit and serves the job's device type, or null. Workers take turns.
// `avoided` is what the workers serve that do not get it, if that is not empty; `must_be_idle`
// skips workers that have a job of this type.
template <class Job>
typename work_queue_state<Job>::worker* work_queue_state<Job>::find_worker(
    const Job& job, const std::string& avoided, bool must_be_idle) {
  const std::string_view device_type = view(job->getHeader().getDeviceType());
  for (const std::string& served : {std::string(device_type), std::string(every_type)}) {
    const auto line = ready.find(served);
    if (line == ready.end()) continue;
    const auto found = line->second.take([&](const caf::actor_addr& address) {
      const auto known = workers.find(address);
      if (known == workers.end() || known->second.credits == 0 || !known->second.serves(served))
        return ready_line::fitness::gone;
      const worker& one = known->second;
      const bool is_fit = !(must_be_idle && one.has_job_of(device_type)) &&
                          !(!avoided.empty() && one.serves(avoided));
      return is_fit ? ready_line::fitness::fit : ready_line::fitness::unfit;
    });
    if (found) return &workers.at(*found);
  }
  return nullptr;
}

// Returns the worker that gets the job, or null if the job must wait. A surprising measurement is
// confirmed by another device than the one that made it, if there is one: if all others are busy,
// the job waits.
template <class Job>
typename work_queue_state<Job>::worker* work_queue_state<Job>::choose_worker(const Job& job,
                                                                             bool must_be_idle) {
  const std::string avoided = first_device(job);
  worker* const other = find_worker(job, avoided, must_be_idle);
  if (other != nullptr || avoided.empty()) return other;
  const auto count = [this](const std::string& served) {
    const auto known = serving.find(served);
    return known == serving.end() ? std::size_t{0} : known->second;
  };
  const bool is_other_busy =
      count(std::string(view(job->getHeader().getDeviceType()))) + count(std::string(every_type)) >
      count(avoided);
  return is_other_busy ? nullptr : find_worker(job, "", must_be_idle);
}

// Puts a worker that has credits into the lines of what it serves.
template <class Job>
void work_queue_state<Job>::wait_for_jobs(const worker& one) {
  if (one.credits == 0) return;
  for (const std::string& served : one.device_types) ready[served].add(one.handle.address());
}

template <class Job>
void work_queue_state<Job>::hand_out(const std::string& device_type) {
  while (hand_out_one(device_type)) {
  }
}

template <class Job>
void work_queue_state<Job>::hand_out_in_turn() {
  std::vector<std::string> types;
  for (const auto& [device_type, jobs] : waiting) {
    if (jobs.size() > 0) types.push_back(device_type);
  }
  const auto hand_out_next = [&] {
    const std::vector<std::string> in_turn = shares.in_turn(types);
    return std::any_of(in_turn.begin(), in_turn.end(),
                       [this](const std::string& type) { return hand_out_one(type); });
  };
  while (hand_out_next()) {
  }
}

template <class Job>
bool work_queue_state<Job>::hand_out_one(const std::string& device_type) {
  auto& jobs = waiting[device_type];
  if (hand_out_confirmation(jobs)) return true;
  while (!jobs.empty() && drop_if_late(jobs.front())) jobs.take_front();
  if (jobs.empty()) return false;
  worker* const w = choose_worker(jobs.front(), jobs.has_only_repeats());
  if (w == nullptr) return false;
  give(*w, jobs.take_front());
  return true;
}

template <class Job>
bool work_queue_state<Job>::hand_out_confirmation(job_line<Job>& jobs) {
  for (auto lane = jobs.confirmations().begin(); lane != jobs.confirmations().end();) {
    auto& confirmations = lane->second;
    while (!confirmations.empty() && drop_if_late(confirmations.front())) confirmations.pop_front();
    if (confirmations.empty()) {
      lane = jobs.confirmations().erase(lane);
      continue;
    }
    if (worker* const w = choose_worker(confirmations.front(), false); w != nullptr) {
      give(*w, confirmations.front());
      confirmations.pop_front();
      return true;
    }
    ++lane;
  }
  return false;
}

template <class Job>
bool work_queue_state<Job>::drop_if_late(const Job& job) {
  if (job->getHeader().getDeadlineMs() >= unix_ms()) return false;
  counts.failed();
  lost_with_nodes.erase(measurement_id(job->getHeader().getMeasurementId()));
  return true;
}

template <class Job>
void work_queue_state<Job>::give(worker& to, const Job& job) {
  --to.credits;
  to.in_flight.emplace(measurement_id(job->getHeader().getMeasurementId()),
                       given_job{job, clock::now()});
  shares.count(std::string(view(job->getHeader().getDeviceType())));
  wait_for_jobs(to);
  self->send(to.handle, job);
}

template <class Job>
void work_queue_state<Job>::pull(const caf::strong_actor_ptr& who,
                                 const std::vector<std::string>& device_types,
                                 std::uint32_t credits) {
  if (who == nullptr) return;
  const auto address = caf::actor_cast<caf::actor_addr>(who);
  auto [entry, fresh] = workers.try_emplace(address);
  if (fresh) {
    entry->second.handle = caf::actor_cast<worker_actor<Job>>(who);
    self->monitor(entry->second.handle);
  }
  for (const std::string& served : entry->second.device_types) --serving[served];
  entry->second.device_types = device_types;
  for (const std::string& served : device_types) ++serving[served];
  entry->second.credits += credits;
  wait_for_jobs(entry->second);
  hand_out_in_turn();
}

template <class Job>
void work_queue_state<Job>::done(const caf::strong_actor_ptr& who, const measurement_id& id) {
  const auto found = workers.find(caf::actor_cast<caf::actor_addr>(who));
  if (found == workers.end()) return;
  worker& one = found->second;
  const auto given = one.in_flight.find(id);
  if (given == one.in_flight.end()) return;
  const clock::time_point now = clock::now();
  shares.learn(std::string(view(given->second.job->getHeader().getDeviceType())),
               now - std::max(given->second.at, one.free_at));
  one.free_at = now;
  one.in_flight.erase(given);
  lost_with_nodes.erase(id);
  ++one.credits;
  wait_for_jobs(one);
  counts.processed();
  hand_out_in_turn();
}

template <class Job>
void work_queue_state<Job>::close(const caf::strong_actor_ptr& who,
                                  const evaluation_record& evaluation) {
  self->send(pool, close_atom_v, evaluation);
  done(who, measurement_id(evaluation->getMeasurementId()));
}

template <class Job>
void work_queue_state<Job>::lose(const caf::actor_addr& who, const caf::error& reason) {
  const auto found = workers.find(who);
  if (found == workers.end()) return;
  const std::multimap<measurement_id, given_job> lost = std::move(found->second.in_flight);
  for (const std::string& served : found->second.device_types) --serving[served];
  workers.erase(found);
  const bool has_left = !reason;  // before it knew of the jobs
  const bool is_node_lost = reason == caf::exit_reason::remote_link_unreachable;
  for (const auto& [id, given] : lost) {
    const Job& job = given.job;
    if (has_left) {
      put_again(job);
      continue;
    }
    counts.failed();
    if (is_node_lost && ++lost_with_nodes[id] <= max_lost_nodes) {
      put_again(job);
      continue;
    }
    lost_with_nodes.erase(id);
    if (job->getHeader().getAttempt() >= last_attempt) {
      self->send(pool, close_atom_v,
                 close_job(job->getHeader(), schema::Outcome::INFRASTRUCTURE, "",
                           "the job was lost with its worker in the " + stage + " stage " +
                               std::to_string(last_attempt) + " times"));
      continue;
    }
    put_again(next_attempt(job));
  }
}

template <class Job>
void work_queue_state<Job>::put_again(const Job& job) {
  const std::string device_type(view(job->getHeader().getDeviceType()));
  waiting[device_type].push_front(job);
  hand_out(device_type);
}

template <class Job>
std::size_t work_queue_state<Job>::queued() const {
  std::size_t count = 0;
  for (const auto& [device_type, jobs] : waiting) count += jobs.size();
  return count;
}

template <class Job>
std::size_t work_queue_state<Job>::in_flight() const {
  std::size_t count = 0;
  for (const auto& [address, w] : workers) count += w.in_flight.size();
  return count;
}

template <class Job>
typename work_queue_actor<Job>::behavior_type work_queue_behavior(
    typename work_queue_actor<Job>::template stateful_pointer<work_queue_state<Job>> self,
    const std::string& stage, const pool_actor& pool) {
  auto& s = self->state;
  s.self = self;
  s.pool = pool;
  s.stage = stage;
  s.counts = activity("queue " + stage, "queue");
  self->set_down_handler(
      [self](const caf::down_msg& down) { self->state.lose(down.source, down.reason); });
  return {
      [self](put_atom, const Job& job) { self->state.put(job); },
      [self](cancel_atom, const std::vector<std::uint64_t>& halves) {
        self->state.cancel(ids_of<measurement_id>(halves));
      },
      [self](pull_atom, const std::vector<std::string>& device_types, std::uint32_t credits) {
        self->state.pull(self->current_sender(), device_types, credits);
      },
      [self](done_atom, std::uint64_t high, std::uint64_t low) {
        self->state.done(self->current_sender(), measurement_id{high, low});
      },
      [self](close_atom, const evaluation_record& evaluation) {
        self->state.close(self->current_sender(), evaluation);
      },
      [self](status_atom) {
        return self->state.counts.report(self->state.queued(), self->state.in_flight());
      },
  };
}

template struct work_queue_state<compile_job>;
template struct work_queue_state<verify_job>;
template struct work_queue_state<benchmark_job>;
template compile_queue_actor::behavior_type work_queue_behavior<compile_job>(
    compile_queue_actor::stateful_pointer<work_queue_state<compile_job>>, const std::string&,
    const pool_actor&);
template verify_queue_actor::behavior_type work_queue_behavior<verify_job>(
    verify_queue_actor::stateful_pointer<work_queue_state<verify_job>>, const std::string&,
    const pool_actor&);
template benchmark_queue_actor::behavior_type work_queue_behavior<benchmark_job>(
    benchmark_queue_actor::stateful_pointer<work_queue_state<benchmark_job>>, const std::string&,
    const pool_actor&);

}  // namespace hone
