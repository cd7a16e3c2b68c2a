#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "evaluation/backends/cuda/gpu_processes.hpp"
#include "evaluation/backends/cuda/gpu_session.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "tasks/settings.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Opens programs in the processes of one GPU. Owns their two arenas, one for candidates and one for
// references. At most one candidate and one reference are open at a time.
// Confined to the thread that made it.
class gpu_sessions {
 public:
  using role = gpu_processes::role;
  // Serial numbers of the candidate's and the reference's process.
  using process_pair = std::pair<std::uint64_t, std::uint64_t>;

  // Attaches the processes, which must outlive this object, and waits until they are ready.
  // `arena_bytes`: the size of each of the two arenas.
  gpu_sessions(gpu_context& gpu, gpu_processes& processes, const compiled_block& tools,
               int launch_core, std::uint64_t arena_bytes);

  // Opens a candidate on poisoned memory. The session stays valid until the next candidate is
  // opened.
  program_result<gpu_session*> open_candidate(role in, const schema::Artifact::Reader& artifact,
                                              const task& t, time_budget& budget);
  // Returns true if the first call of the open candidate with tensors of new sizes may try several
  // algorithms: its settings ask for cuDNN's autotuning, and its text has convolutions.
  bool candidate_tunes() const { return candidate_tunes_; }
  // Opens the reference in a candidate's process, to be timed against itself. The session stays
  // valid until the next candidate is opened. Throws reference_error.
  gpu_session& open_reference_as_candidate(role in, const task& t);
  // Returns the session of the task's reference with the current settings, opening it first if
  // necessary. Throws reference_error.
  gpu_session& reference(const task& t);

  // Changes the settings of references for as long as the object lives. For baselines only.
  class reference_settings_scope {
   public:
    reference_settings_scope(gpu_sessions& of, const opened_settings& asked)
        : of_(&of), before_(std::exchange(of.reference_settings_, asked)) {}
    ~reference_settings_scope() { of_->reference_settings_ = before_; }
    reference_settings_scope(const reference_settings_scope&) = delete;
    reference_settings_scope& operator=(const reference_settings_scope&) = delete;

   private:
    gpu_sessions* of_;
    opened_settings before_;
  };

  // Replace a process by one that has run nothing, and wait until no process is starting. The open
  // session of a candidate or reference becomes invalid.
  void replace_candidate(role in);
  void replace_reference();

  process_pair pair_of(role in) { return processes_->pair_of(in); }
  std::uint64_t arena_bytes() const { return candidate_arena_.size(); }
  gpu_arena& candidate_arena() { return candidate_arena_; }
  gpu_arena& reference_arena() { return reference_arena_; }

 private:
  struct opened_reference {
    task_id of;
    opened_settings asked;
    std::uint64_t process = 0;  // its serial number
    bool operator==(const opened_reference&) const = default;
  };

  gpu_context* gpu_;
  gpu_arena candidate_arena_;
  gpu_arena reference_arena_;
  gpu_processes* processes_;
  opened_settings reference_settings_;
  std::optional<opened_reference> opened_reference_;
  std::optional<gpu_session> candidate_session_;
  bool candidate_tunes_ = false;
  std::optional<gpu_session> reference_session_;
};

}  // namespace hone
