#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/activity.hpp"
#include "actors/fair_lane.hpp"
#include "actors/ready_line.hpp"
#include "actors/type_shares.hpp"
#include "messages/ids.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// Returns what only the workers of the device that made the first measurement serve; empty if there
// is none.
std::string first_device(const compile_job& job);
std::string first_device(const verify_job& job);
std::string first_device(const benchmark_job& job);

// Holds jobs for one device type in lanes. Jobs that repeat the measurement of a known score wait
// until no other job is left, except that every sixteenth job taken is a repeat. Confirmations,
// which want another device than the one that measured first, stand aside, so that no other job
// waits behind them.
template <class Job>
class job_line {
 public:
  void push_back(const Job& job) {
    with_lane_of(job, [&](auto& lane) { lane.push_back(job); });
  }
  void push_front(const Job& job) {
    with_lane_of(job, [&](auto& lane) { lane.push_front(job); });
  }
  // True if there are none but confirmations.
  bool empty() const { return first_.empty() && repeats_.empty(); }
  bool has_only_repeats() const { return first_.empty() && !repeats_.empty(); }
  std::size_t size() const {
    std::size_t count = first_.size() + repeats_.size();
    for (const auto& [device, lane] : confirmations_) count += lane.size();
    return count;
  }
  template <class IsGone>
  void erase_if(const IsGone& is_gone) {
    first_.erase_if(is_gone);
    repeats_.erase_if(is_gone);
    for (auto& [device, lane] : confirmations_) std::erase_if(lane, is_gone);
  }
  // The confirmations, by what only the first device serves.
  std::map<std::string, std::deque<Job>>& confirmations() { return confirmations_; }
  const Job& front() const { return takes_repeat() ? repeats_.front() : first_.front(); }
  Job take_front() {
    auto& lane = takes_repeat() ? repeats_ : first_;
    ++taken_;
    return lane.take_front();
  }

 private:
  static constexpr unsigned repeats_every = 16;
  template <class Use>
  void with_lane_of(const Job& job, const Use& use) {
    if (std::string measured_by = first_device(job); !measured_by.empty())
      return use(confirmations_[std::move(measured_by)]);
    use(job->getHeader().getKnownScore() > 0 ? repeats_ : first_);
  }
  bool takes_repeat() const {
    return first_.empty() || (taken_ % repeats_every == repeats_every - 1 && !repeats_.empty());
  }
  fair_lane<Job> first_;
  fair_lane<Job> repeats_;
  std::map<std::string, std::deque<Job>> confirmations_;
  unsigned taken_ = 0;
};

// Sends jobs to the workers that have credits and records which worker has which job. Where only
// repeats of a device type are left, a worker has one job of that type at a time, so that a policy
// that shares its GPU waits for no line of them. Jobs of a lost worker return to the front of the
// queue with their attempt count incremented. After the last attempt the queue reports the outcome
// `infrastructure` to the pool. A worker that was lost with its node costs its jobs no attempt, up
// to a number of losses beyond which the job may be what ends the nodes. A job past its deadline is
// dropped, because the pool hands out such jobs again.
template <class Job>
struct work_queue_state {
  using clock = std::chrono::steady_clock;
  struct given_job {
    Job job;
    clock::time_point at;
  };
  struct worker {
    worker_actor<Job> handle;
    std::vector<std::string> device_types;
    std::uint32_t credits = 0;
    // By measurement id. A job that the pool has handed out again may be here twice.
    std::multimap<measurement_id, given_job> in_flight;
    clock::time_point free_at{};  // when it finished its last job
    bool serves(std::string_view device_type) const;
    bool has_job_of(std::string_view device_type) const;
  };

  work_queue_state() = default;

  typename work_queue_actor<Job>::template stateful_pointer<work_queue_state> self = nullptr;
  pool_actor pool;
  std::string stage;
  activity counts{"", "queue"};
  std::map<std::string, job_line<Job>> waiting;  // by device type
  type_shares shares;
  std::map<caf::actor_addr, worker> workers;
  // How often a job that has not ended was lost with a node.
  std::map<measurement_id, std::uint32_t> lost_with_nodes;
  std::map<std::string, ready_line> ready;     // workers with credits, by what they serve
  std::map<std::string, std::size_t> serving;  // number of workers, by what they serve

  void put(const Job& job);
  void cancel(const std::set<measurement_id>& ids);
  void pull(const caf::strong_actor_ptr& who, const std::vector<std::string>& device_types,
            std::uint32_t credits);
  void done(const caf::strong_actor_ptr& who, const measurement_id& id);
  // Passes the evaluation on to the pool, also one of a worker that is lost: the pool keeps the
  // first one of a job.
  void close(const caf::strong_actor_ptr& who, const evaluation_record& evaluation);
  void lose(const caf::actor_addr& who, const caf::error& reason);
  void put_again(const Job& job);
  void hand_out(const std::string& device_type);
  void hand_out_in_turn();
  // Give a job to a worker, and say whether there was one of each.
  bool hand_out_one(const std::string& device_type);
  bool hand_out_confirmation(job_line<Job>& jobs);
  // Drops a job that is past its deadline, and says whether it was.
  bool drop_if_late(const Job& job);
  void give(worker& to, const Job& job);
  worker* choose_worker(const Job& job, bool must_be_idle);
  worker* find_worker(const Job& job, const std::string& avoided, bool must_be_idle);
  void wait_for_jobs(const worker& one);
  std::size_t queued() const;
  std::size_t in_flight() const;
};

// `stage` is the stage of the pipeline in which the queue's jobs begin: "compile", "verify",
// "benchmark".
template <class Job>
typename work_queue_actor<Job>::behavior_type work_queue_behavior(
    typename work_queue_actor<Job>::template stateful_pointer<work_queue_state<Job>> self,
    const std::string& stage, const pool_actor& pool);

extern template struct work_queue_state<compile_job>;
extern template struct work_queue_state<verify_job>;
extern template struct work_queue_state<benchmark_job>;

}  // namespace hone
