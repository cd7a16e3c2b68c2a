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

// One process forked from a zygote, with programs loaded. Every command has a deadline; a process
// that misses it is killed. Confined to one thread. Keeps its zygote alive.
class sandbox_session {
 public:
  ~sandbox_session();
  sandbox_session(const sandbox_session&) = delete;
  sandbox_session& operator=(const sandbox_session&) = delete;

  // Loads programs and, if `object` is not empty, the candidate's shared object.
  program_result<opened_programs> open(const std::vector<program_source>& programs,
                                       const std::string& object, bool judges_candidate,
                                       time_point deadline);
  program_result<void> stage(const record<schema::Command>& command, time_point deadline);
  // Runs what was staged.
  program_result<batch_clock> go(time_point deadline);
  // Stages parameters alone. The time does not count as outside of the runs.
  program_result<void> prepare(const record<schema::Command>& command, time_point deadline);

  // Stops the process so that nothing in the arena changes while it is read, or continues it.
  void freeze();
  void thaw();
  bool alive() const { return pid_ > 0; }

 private:
  friend class sandbox_zygote;
  sandbox_session(std::shared_ptr<sandbox_zygote> zygote, pid_t pid, unique_fd socket,
                  const arena* memory);
  program_result<record<schema::Reply>> request(const std::vector<char>& bytes,
                                                std::span<const int> descriptors,
                                                time_point deadline);
  program_failure end(bool timed_out);

  std::shared_ptr<sandbox_zygote> zygote_;
  pid_t pid_;
  unique_fd socket_;
  const arena* memory_;
  clockid_t clock_ = 0;
  // From the first successful open() of a candidate on: a candidate can write to the socket, so not
  // every message is trusted.
  bool runs_candidate_ = false;
  std::int64_t last_run_end_ns_ = -1;  // on the process's own clock
};

// The warm process that sessions are forked from. Starting it takes some 0.4 s, a session 1 to 4 ms.
// It dies with the thread that made it. Functions throw std::runtime_error if it cannot be started
// or has died.
class sandbox_zygote : public std::enable_shared_from_this<sandbox_zygote> {
 public:
  static std::shared_ptr<sandbox_zygote> start();
  // `memory` is mapped by the session and must outlive it; null for sessions that only check
  // programs. `private_bytes` limits the memory that the session may have beside the arena.
  std::unique_ptr<sandbox_session> fork_session(arena* memory, std::uint64_t private_bytes);
  pid_t pid() const { return process_.pid(); }

 private:
  friend class sandbox_session;
  sandbox_zygote();
  int ask(const record<schema::Command>& command, std::span<const int> descriptors);

  child_process process_;
  unique_fd socket_;
};

}  // namespace hone
