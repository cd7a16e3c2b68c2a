#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "evaluation/program/clocks.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/program/source.hpp"
#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"
#include "process/child_process.hpp"
#include "process/unique_fd.hpp"

namespace hone {

class sandbox_zygote;

// One process forked from a zygote, with programs loaded, and the process that it forks for a
// candidate's kernels. Every command has a deadline, and a session that misses it is killed. Keeps
// its zygote alive; the destructor kills the process. Confined to one thread.
class sandbox_session {
 public:
  ~sandbox_session();
  sandbox_session(const sandbox_session&) = delete;
  sandbox_session& operator=(const sandbox_session&) = delete;

  // Loads programs and, if `object` is not empty, the candidate's shared object, whose bytes it is.
  program_result<opened_programs> open(const std::vector<program_source>& programs,
                                       const std::string& object, bool judges_candidate,
                                       time_point deadline);
  program_result<void> stage(const record<schema::Command>& command, time_point deadline);
  // Runs the staged calls, each after `write` has been called with its number. `read` is called
  // with it after the call, when no clock runs.
  program_result<batch_clock> go(std::size_t calls, time_point deadline,
                                 const program_session::input_writer& write,
                                 const std::function<void(std::size_t call)>& read = nullptr);
  // Makes the runs of a study on the staged call.
  program_result<void> study(const study_plan& plan, time_point deadline);
  // Stages parameters without calls, so that prepare() runs. Its processor time does not count as
  // batch_clock::outside_ns of the next run.
  program_result<void> prepare(const record<schema::Command>& command, time_point deadline);

  // freeze() stops the session, so that nothing in the arena changes while it is read. thaw()
  // continues it.
  void freeze();
  void thaw();
  bool alive() const { return host_.pid > 0; }
  // Returns true if the session has other threads, which may run while it waits for the judge.
  bool has_threads() const;

 private:
  friend class sandbox_zygote;
  sandbox_session(std::shared_ptr<sandbox_zygote> zygote, pid_t pid, unique_fd socket,
                  arena* memory);
  program_result<record<schema::Reply>> request(const std::vector<char>& bytes,
                                                std::span<const int> descriptors,
                                                time_point deadline);
  // Sends a message and receives the next one, whose bytes are empty if it passes the turn back.
  program_result<std::vector<char>> exchange(const std::vector<char>& bytes,
                                             std::span<const int> descriptors, time_point deadline);
  program_result<record<schema::Reply>> read_reply(std::vector<char> bytes);
  program_result<void> receive_end(time_point deadline);
  // Waits until the process has confined itself. Throws std::runtime_error if it cannot.
  void await_confinement(time_point deadline);
  program_failure end(bool timed_out);

  // A process and its processor clock.
  struct clocked_process {
    pid_t pid = -1;
    clockid_t clock = CLOCK_MONOTONIC;
    unique_fd handle;  // of kernels: a pidfd, because the judge is not their parent
  };
  static clocked_process clocked(pid_t pid);
  // Finds the process that runs the session's kernels. Returns false if `pid` is not its child.
  bool adopt_kernels(pid_t pid);
  // Returns the processor time of the session and its kernels.
  std::int64_t processor_ns() const;
  void end_kernels();

  std::shared_ptr<sandbox_zygote> zygote_;
  clocked_process host_;
  clocked_process kernels_;  // pid -1: none
  unique_fd socket_;
  arena* memory_;
  // True from the first successful open() of a candidate on, or the first open() of a Python
  // module. The program is not trusted to leave the session alone, so not every message is
  // believed.
  bool runs_candidate_ = false;
  bool is_open_ = false;
  std::int64_t last_run_end_ns_ = -1;  // of processor_ns(); -1: no run yet
};

// The warm process that sessions are forked from. Starting the zygote takes about 0.4 s, and
// forking a session 1 to 4 ms. The zygote dies with the thread that started it. Functions throw
// std::runtime_error if it cannot be started or has died. Confined to one thread.
class sandbox_zygote : public std::enable_shared_from_this<sandbox_zygote> {
 public:
  static std::shared_ptr<sandbox_zygote> start();
  // Starts one for Python modules: Python with torch, and libhone-module.so. This takes 2 to 4 s.
  static std::shared_ptr<sandbox_zygote> start_for_modules();
  // Starts a session. The session maps `memory`, which must outlive it; null for sessions that only
  // check programs. `private_bytes` limits the session's memory outside of the arena.
  std::unique_ptr<sandbox_session> fork_session(arena* memory, std::uint64_t private_bytes);
  pid_t pid() const { return process_.pid(); }
  // Processor time that every call takes in addition to its work, in nanoseconds: that of a turn,
  // and of the kernels' process where there is one.
  double turn_ns(bool has_kernels) const { return turn_ns_ + (has_kernels ? kernels_ns_ : 0); }
  // Processor time that every call of a Python module takes in addition, in nanoseconds. A hostile
  // module may do without it, so it is not taken off.
  double harness_ns() const { return harness_ns_; }

 private:
  friend class sandbox_session;
  sandbox_zygote(child_options options, bool runs_modules);
  record<schema::Reply> ask(const record<schema::Command>& command,
                            std::span<const int> descriptors);
  std::string name() const;  // in messages

  bool runs_modules_;
  child_process process_;
  unique_fd socket_;
  double turn_ns_ = 0;
  double kernels_ns_ = 0;
  double harness_ns_ = 0;
};

}  // namespace hone
