#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "cuda/gpus.hpp"
#include "evaluation/backends/cuda/gpu_arena.hpp"
#include "evaluation/backends/cuda/gpu_module_session.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "evaluation/sandbox/client/gpu_process.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "tasks/task_file.hpp"

namespace hone {

// The processes of Python modules on one GPU: one for a candidate, which runs nothing else before
// or after it, spares that were started ahead, and one for the tasks' own modules. They are started
// when the first module is judged. Functions throw std::runtime_error if no process can be started.
// Confined to one thread. Everything passed by reference must outlive the object.
class gpu_modules {
 public:
  // `visible`: CUDA_VISIBLE_DEVICES of the processes. `launch_core`: as in gpu_processes. The
  // arenas are shared with other processes, which do nothing while a module uses them.
  gpu_modules(gpu_context& gpu, const gpu_facts& facts, std::string visible, int launch_core,
              gpu_arena& candidates, gpu_arena& references);

  // Opens a candidate in a new process. The session stays valid until the next candidate is opened
  // or the candidate's process is ended.
  program_result<gpu_session*> open_candidate(const schema::Artifact::Reader& artifact,
                                              const task& t, time_budget& budget);
  void end_candidate();
  // Returns the session of the task's own module, opening it first if necessary. Throws
  // reference_error.
  gpu_module_session& reference(const task& t);
  // Ends all processes, before the arenas are freed.
  void end();

 private:
  struct place {
    gpu_arena* arena;
    std::unique_ptr<gpu_event> begins;  // recorded before a call's inputs are readable
  };
  std::unique_ptr<gpu_process> start(const place& in);
  const flush_memory& flush();
  // Starts several spares at once, which use different cores, if there is none.
  void ensure_spares();

  gpu_context* gpu_;
  std::uint64_t l2_bytes_;
  std::string visible_;
  int launch_core_;
  place candidates_;
  place references_;
  std::optional<flush_memory> flush_;
  std::deque<std::unique_ptr<gpu_process>> spares_;
  std::unique_ptr<gpu_process> candidate_;
  std::unique_ptr<gpu_process> reference_;
  std::optional<task_id> opened_reference_;
  std::optional<gpu_module_session> reference_session_;
  std::optional<gpu_module_session> candidate_session_;
};

}  // namespace hone
