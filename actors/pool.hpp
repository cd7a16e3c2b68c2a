#pragma once

#include <caf/all.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/draw_schedule.hpp"
#include "messages/interfaces.hpp"
#include "storage/pool.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct pool_actor_options {
  pool_options storage;
  draw_schedule::options draws;
  std::string acknowledgements;  // a file that lists what has been acknowledged; empty: none
};

// Owns everything durable. Messages change the pool in memory; one flush behind them makes all of
// it durable with a single write, and only then are answers given and jobs sent on.
struct pool_state {
  pool_state() = default;

  pool_actor::stateful_pointer<pool_state> self = nullptr;
  std::shared_ptr<const task_table> tasks;
  std::unique_ptr<pool> owned;
  std::unique_ptr<draw_schedule> schedule;
  caf::actor supervisor;  // hears (fatal_atom, reason)
  compile_queue compilers;
  activity counts{"pool", "pool"};

  struct waiting_taker {
    pool::batch_request request;
    bool is_even = false;  // over the tasks
    caf::typed_response_promise<batch_record> promise;
    std::uint64_t since_ms = 0;
  };
  struct waiting_asker {
    caf::typed_response_promise<draw_record> promise;
    std::uint64_t since_ms = 0;
  };
  struct acknowledgement {
    caf::typed_response_promise<done_atom> promise;
    std::string line;
  };

  std::deque<waiting_asker> waiting_draws;
  std::vector<waiting_taker> takers;
  std::vector<acknowledgement> unacknowledged;  // for the next flush
  std::vector<std::string> closed_lines;        // measurements that the next flush acknowledges
  std::vector<compile_job> unsent;              // likewise
  std::vector<draw_record> comparison_draws;    // what all compared versions are shown
  std::map<Outcome, std::uint64_t>
      outcomes;  // of this stage's new programs, as they were first judged
  Stage outcomes_of = Stage::SFT;
  double lag = 0;
  bool flush_is_due = false;
  bool stopping = false;
  int acknowledgements = -1;  // file descriptor

  void submit(const group_record& group, const caf::typed_response_promise<done_atom>& promise);
  void close(const evaluation_record& result);
  void commit_step(const version_record& version, const step_record& step,
                   const caf::typed_response_promise<done_atom>& promise);
  void schedule_flush();
  void flush();
  void serve_draws();
  void serve_takers();
  void change_devices(const device_type_record& type, std::int32_t by);
  void turn_away_old_askers();
  void tick();
  void attempt(const std::function<void()>& work);
  draw_record make_draw(const draw_schedule::assignment& what);
  run_status_record status() const;
  void fail(const std::string& reason);
};

pool_actor::behavior_type pool_shell(pool_actor::stateful_pointer<pool_state> self,
                                     pool_actor_options options,
                                     std::shared_ptr<const task_table> tasks,
                                     caf::actor supervisor);

}  // namespace hone
