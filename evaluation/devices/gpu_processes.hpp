#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "evaluation/compile/compile_result.hpp"
#include "evaluation/cuda/gpus.hpp"
#include "evaluation/judge/gpu/gpu_session.hpp"
#include "evaluation/sandbox/gpu_process.hpp"

namespace hone {

// The processes that work on one GPU for its judge: three for candidates, one for references, and
// spares that were made ready beforehand, one of which takes the place of a candidate's that died,
// hung or lost its context (doc/decisions/013). Throws std::runtime_error where none can be
// started. One thread, which must be the one that made it; the arenas must outlive it.
class gpu_processes {
 public:
  // Where a candidate runs. Most of the bad ones end where they are verified; what tells processes
  // apart for life is known of the other two, of which one confirms what the other has measured.
  enum class role : std::size_t { verifying, timing, confirming };

  // `tools`: the judge's own kernels; `core`: that all launch from, which take turns, so that what
  // is compared does not differ by it; -1: any. All are ready when it returns.
  gpu_processes(const gpu_facts& facts, const compiled_block& tools, int core,
                const gpu_arena& candidates, const gpu_arena& references);

  // Processes that live, as far as one can tell.
  gpu_process& candidate(role of);
  gpu_process& reference();
  void replace(role of);
  void replace_reference();
  // Until no new process is starting, which would disturb what is timed.
  void await_spares();
  // Serial numbers of what is compared when a candidate is timed there.
  std::pair<std::uint64_t, std::uint64_t> pair_of(role of);

 private:
  std::unique_ptr<gpu_process> start(const gpu_arena& arena) const;

  std::string visible_;
  gpu_attachment attachment_;  // without an arena
  const gpu_arena* candidate_arena_;
  const gpu_arena* reference_arena_;
  std::array<std::unique_ptr<gpu_process>, 3> candidates_;  // by role
  std::unique_ptr<gpu_process> reference_;
  std::deque<std::unique_ptr<gpu_process>> spares_;  // they start while others work
};

}  // namespace hone
