#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cuda/gpus.hpp"
#include "evaluation/backends/cuda/gpu_arena.hpp"
#include "evaluation/compile/compiled_block.hpp"
#include "evaluation/sandbox/client/gpu_process.hpp"

namespace hone {

// The processes that run programs on one GPU for its judge: three for candidates, one for
// references, and spares that were started beforehand. A spare replaces a candidate's process that
// has died, hung or lost its context. Functions throw std::runtime_error if no
// process can be started. Confined to the thread that made it.
class gpu_processes {
 public:
  // The use of a candidate's process. Most bad candidates fail in the verifying process. The bias
  // of the other two processes stays known for as long as they live. The confirming process repeats
  // surprising measurements of the timing process.
  enum class role : std::size_t { verifying, timing, confirming };

  // Starts the processes, without waiting for them. `driver_cache`: as in gpu_process, for
  // references.
  gpu_processes(const gpu_facts& facts, std::size_t spares, std::filesystem::path driver_cache);
  // Gives the processes their resources, without waiting for them. Must be called once before any
  // other function. `tools`: the judge's kernels. `launch_core`: the core from which all
  // processes launch, one at a time, so that launch cost is comparable; -1: any core. The arenas
  // must live until end() at least.
  void attach(const compiled_block& tools, int launch_core, const gpu_arena& candidates,
              const gpu_arena& references);

  // Ends all processes, before the arenas that they have mapped are freed.
  void end();
  const std::string& visible() const { return visible_; }  // CUDA_VISIBLE_DEVICES of the processes

  // Return a process that is ready and alive. A dead process is replaced first.
  gpu_process& candidate(role of);
  gpu_process& reference();
  // Replace a process by one that has run nothing: a spare for candidates, a new one for
  // references.
  void replace(role of);
  void replace_reference();
  // Waits until no process is starting, because a starting process would disturb timing.
  void await_all();
  // Returns the serial numbers of the candidate's and the reference's process.
  std::pair<std::uint64_t, std::uint64_t> pair_of(role of);

 private:
  std::unique_ptr<gpu_process> start() const;
  std::unique_ptr<gpu_process> start_reference() const;
  void attach(gpu_process& one, const gpu_arena& arena) const;

  std::string visible_;
  std::filesystem::path driver_cache_;
  gpu_attachment attachment_;  // without an arena
  const gpu_arena* candidate_arena_ = nullptr;
  const gpu_arena* reference_arena_ = nullptr;
  std::array<std::unique_ptr<gpu_process>, 3> candidates_;  // by role
  std::unique_ptr<gpu_process> reference_;
  std::deque<std::unique_ptr<gpu_process>> spares_;  // may still be starting
};

}  // namespace hone
