#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/child_process.hpp"
#include "evaluation/sandbox/framing.hpp"
#include "evaluation/sandbox/programs.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/names.hpp"
#include "messages/record.hpp"

namespace hone {

// What a run took: the child's own processor time, and the parent's wall clock around it.
// Nanoseconds.
struct run_clock {
  std::int64_t cpu_ns = 0;
  std::int64_t wall_ns = 0;
  std::int64_t outside_ns =
      0;  // the child's processor time since its last run: little more than receiving a command
};

class sandbox_zygote;

// One forked process with programs loaded. Every command has a deadline; when it passes, the
// process is killed. Not for more than one thread. It keeps its zygote.
class sandbox_session {
 public:
  ~sandbox_session();
  sandbox_session(const sandbox_session&) = delete;
  sandbox_session& operator=(const sandbox_session&) = delete;

  // Loads programs and, for a candidate, the shared object (may be empty).
  std::variant<opened_programs, session_failure> open(const std::vector<host_source>& programs,
                                                      const std::string& object,
                                                      bool judges_candidate, time_point deadline);
  std::optional<session_failure> stage(const record<schema::Command>& command, time_point deadline);
  std::variant<run_clock, session_failure> go(time_point deadline);
  // Stages parameters alone. What that takes is not counted as outside of the runs.
  std::optional<session_failure> prepare(const record<schema::Command>& command,
                                         time_point deadline);

  // Stops the process so that nothing in the arena changes while it is read; thaw lets it go on.
  void freeze();
  void thaw();

 private:
  friend class sandbox_zygote;
  sandbox_session(std::shared_ptr<sandbox_zygote> zygote, pid_t pid, unique_fd socket,
                  const arena* memory);
  std::variant<record<schema::Reply>, session_failure> request(const std::vector<char>& bytes,
                                                               std::span<const int> descriptors,
                                                               time_point deadline);
  session_failure end(bool timed_out);

  std::shared_ptr<sandbox_zygote> zygote_;
  pid_t pid_;
  unique_fd socket_;
  const arena* memory_;
  clockid_t clock_ = 0;
  bool runs_candidate_ = false;        // from here on its messages are a candidate's
  std::int64_t last_run_end_ns_ = -1;  // on the child's clock
};

// The warm process that sessions are forked from. Starting one takes some 0.4 s, a session 1 to 4
// ms. Dies with the thread that made it. Throws std::runtime_error where it cannot be started or
// has died.
class sandbox_zygote : public std::enable_shared_from_this<sandbox_zygote> {
 public:
  static std::shared_ptr<sandbox_zygote> start();
  // `memory` is mapped by the session and must outlive it; null for sessions that only check
  // programs.
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
