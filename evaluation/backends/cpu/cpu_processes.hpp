#pragma once

#include <memory>
#include <vector>

#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/program/source.hpp"
#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/client/zygote.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// The processes that run programs for a CPU device. All are forked from one zygote, so that a
// candidate has the same addresses as the reference that it is compared with. Functions throw
// std::runtime_error if no process can be started. Confined to one thread.
class cpu_processes {
 public:
  // Opens a fresh session with the candidate loaded, on an arena that no reference uses. All
  // candidates' sessions use that arena, so only one of them may live at a time.
  program_result<std::unique_ptr<program_session>> open_candidate(
      const schema::Artifact::Reader& artifact, const task& t, time_budget& budget);
  // Opens a session with the task's module, which draws the parameters of Python modules. Throws
  // reference_error.
  std::unique_ptr<parameter_source> open_constructor(const task& t);
  // Opens a fresh session with the task's reference, to be timed; only one may live at a time.
  // Throws reference_error.
  std::unique_ptr<program_session> open_reference(const task& t);
  // Opens a fresh session with the task's module, against which Python modules are timed; only one
  // may live at a time. Throws reference_error.
  std::unique_ptr<program_session> open_reference_module(const task& t);
  // Returns the microseconds of the judge's own work in a call of a Python module. One must have
  // been opened.
  double harness_us() const { return module_zygote_->harness_ns() / 1e3; }
  // Opens a session with the programs of the task's oracle. Throws reference_error.
  std::unique_ptr<program_session> open_oracle(const task& t);

 private:
  std::unique_ptr<sandbox_session> fork(arena& memory);
  std::unique_ptr<sandbox_session> open_trusted(const std::vector<program_source>& programs,
                                                arena& memory);

  program_result<std::unique_ptr<program_session>> open_module(
      const schema::Artifact::Reader& artifact, const task& t, time_budget& budget);
  std::unique_ptr<sandbox_session> open_trusted_module(const task& t, arena& memory);
  std::unique_ptr<sandbox_session> fork_for_module(arena& memory);

  std::shared_ptr<sandbox_zygote> zygote_;
  std::shared_ptr<sandbox_zygote> module_zygote_;
  std::unique_ptr<arena> module_arena_;
  std::unique_ptr<arena> reference_module_arena_;
  std::unique_ptr<arena> candidate_arena_;
  std::unique_ptr<arena> reference_arena_;
};

}  // namespace hone
