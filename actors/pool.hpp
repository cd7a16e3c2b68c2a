#pragma once

#include <caf/all.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/draw_schedule.hpp"
#include "actors/log_syncer.hpp"
#include "actors/pool_requests.hpp"
#include "messages/interfaces.hpp"
#include "process/unique_fd.hpp"
#include "storage/pool.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct pool_actor_options {
  pool_options storage;
  draw_schedule::options draws;
  // File that lists everything that was acknowledged; empty for none.
  std::string acknowledgments;
  // Tasks that clients handed in earlier.
  std::vector<task_record> late_tasks;
  // Time after which groups of clients are removed that are judged; 0: never.
  std::uint64_t keep_judged_ms = 0;
  // Syncs the log on a dedicated thread. Otherwise the scheduler's threads sync it.
  bool has_log_thread = true;
};

// Owns everything durable. Messages change the pool in memory. One flush per mailbox batch writes
// all changes at once and has the write synced, while further messages are processed; replies and
// jobs are sent only when it is on disk, and then the next flush begins. A pool that cannot be
// written stops the run: everything that was acknowledged is safe on disk.
struct pool_state {
  pool_state() = default;
  pool_state(const pool_state&) = delete;
  pool_state& operator=(const pool_state&) = delete;
  ~pool_state();

  struct acknowledgment {
    caf::typed_response_promise<done_atom> promise;
    std::string line;
  };

  pool_actor::stateful_pointer<pool_state> self = nullptr;
  std::shared_ptr<const task_table> tasks;
  std::uint64_t keep_judged_ms = 0;
  std::unique_ptr<pool> owned;
  std::shared_ptr<open_log> log;
  caf::actor syncer;
  std::unique_ptr<draw_schedule> schedule;
  std::unique_ptr<pool_requests> requests;
  caf::actor supervisor;  // receives (fatal_atom, reason)
  compile_queue_actor compilers;
  verify_queue_actor verifiers;
  activity counts{"pool", "pool"};
  // Numbers of the generators that have requested draws, each of which is monitored.
  std::map<caf::actor_addr, std::uint64_t> generators;
  std::uint64_t next_generator = 1;

  // Replies and jobs that are sent when what they follow from is on disk, and lines that are added
  // to the acknowledgments' file then.
  struct consequences {
    std::vector<acknowledgment> acknowledgments;
    std::vector<std::string> closed_lines;
    std::vector<compile_job> jobs;
  };
  consequences unwritten;  // of changes since the last write
  consequences unsynced;   // of the last write
  bool flush_is_due = false;
  // The last write is being synced. The next one begins when that has ended.
  bool is_syncing = false;
  bool stopping = false;
  unique_fd acknowledgments;

  // Opens the pool. Throws std::runtime_error.
  void open(const pool_actor_options& options);
  void submit(const group_record& group, const caf::typed_response_promise<done_atom>& promise);
  void submit(const task_record& task, const caf::typed_response_promise<done_atom>& promise);
  void close(const evaluation_record& result);
  void commit_step(const version_record& version, const step_record& step,
                   const caf::typed_response_promise<done_atom>& promise);
  std::uint64_t number_of_generator(const caf::actor& generator);
  void lose_generator(const caf::actor_addr& generator);
  // Does so for all generators of a node. CAF does not always say that these have ended.
  void lose_generators_of(const caf::node_id& node);
  void change_devices(const device_type_record& type, std::int32_t by);
  // Begins a comparison. Returns the number of its groups.
  std::uint32_t compare(const schema::ComparisonRequest::Reader& request);
  // Tells the queues what nobody needs any more.
  void cancel_given_up();
  void schedule_flush();
  // Writes the changes since the last flush, answers requests, and has the write synced.
  void flush();
  void release_unsynced();
  void tick();
  run_status_record status() const;

  // Runs `work`; an exception stops the run.
  void attempt(const std::function<void()>& work);
  void fail(const std::string& reason);
};

pool_actor::behavior_type pool_behavior(pool_actor::stateful_pointer<pool_state> self,
                                        pool_actor_options options,
                                        std::shared_ptr<const task_table> tasks,
                                        caf::actor supervisor);

}  // namespace hone
