#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "evaluation/backends/cuda/gpu_arena.hpp"
#include "evaluation/backends/cuda/gpu_context.hpp"
#include "evaluation/program/arena_plan.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/sandbox/client/gpu_process.hpp"

namespace hone {

// Tensors in GPU memory that only the judge maps. The memory only grows, so `memory` may have more
// and larger entries than the tensors need.
struct gpu_tensors {
  std::vector<tensor_layout> layouts;
  std::vector<gpu_memory> memory;
};

// An output in an arena.
struct gpu_output {
  tensor_layout layout;
  std::vector<std::int64_t> strides;  // in elements
  CUdeviceptr at = 0;
};

// Programs opened in a process on the GPU, and the arena that they work in; the counterpart of
// program_session. References and candidates have the same interface. Confined to one thread.
//
// Order of use: arrange() makes room, the judge writes contents into it, runs make calls, and
// outputs, aliases and damage are read until the next run. Times and offsets that the process
// reports are checked before use. A session must not be used once its process has been replaced.
// The context and the arena must outlive it.
class gpu_session {
 public:
  gpu_session(gpu_context& gpu, gpu_arena& arena, gpu_process& process)
      : gpu_(&gpu), arena_(&arena), process_(&process) {}
  virtual ~gpu_session() = default;
  gpu_session(const gpu_session&) = delete;
  gpu_session& operator=(const gpu_session&) = delete;

  // Makes room for `sets` input sets, each at its own addresses, from `begin` on. Throws
  // std::length_error if they do not fit.
  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets,
               std::uint64_t begin = 0);
  CUdeviceptr input(std::size_t set, std::size_t i) const {
    return arena_->at(plan_.inputs(set).at(i).begin);
  }
  CUdeviceptr parameter(std::size_t i) const { return arena_->at(plan_.parameters().at(i).begin); }
  // The tensors must have the layouts that the session was arranged for.
  void write_inputs(std::size_t set, const gpu_tensors& from) { write(plan_.inputs(set), from); }
  // `seed`: what they were drawn from.
  virtual void write_parameters(const gpu_tensors& from, std::uint64_t /*seed*/ = 0) {
    write(plan_.parameters(), from);
  }
  // Return true if the arguments still hold what was written.
  bool inputs_hold(std::size_t set, const gpu_tensors& written) const {
    return holds(plan_.inputs(set), written);
  }
  virtual bool parameters_hold(const gpu_tensors& written) const {
    return holds(plan_.parameters(), written);
  }

  // Returns true if calls after prepare() may be slow once, so that one must not be timed.
  virtual bool warms_up() const { return false; }
  // Runs the program's prepare() now, untimed. Contents that it must not know are written after
  // this.
  virtual program_result<void> prepare(time_point deadline);
  // See program_session::require_row_major().
  void require_row_major(std::uint64_t outputs) { row_major_outputs_ = outputs; }
  // Makes one call per entry of `sets`, in order, on poisoned scratch memory. All outputs stay
  // until the next run.
  virtual program_result<void> run(std::span<const std::size_t> sets, time_point deadline);
  // Runs prepare() and the calls in one command. For references, from which no contents are kept
  // secret.
  program_result<void> run_anew(std::span<const std::size_t> sets, time_point deadline);
  // Runs prepare() and the runs of a study on input set 0. For references. Their outputs are those
  // of calls 0, 1, ... afterwards. Returns the number of discontinuous results that rounding may
  // change.
  program_result<std::uint64_t> study(const study_plan& plan, time_point deadline);
  // Makes calls as run() does, each timed by itself after the cache flushes that `flushes` demands.
  // Inputs must have been encrypted with `keys`, by call and input; each input is decrypted just
  // before its call.
  virtual program_result<std::vector<call_clock>> time(
      std::span<const std::size_t> sets, const std::vector<std::vector<std::uint64_t>>& keys,
      const flush_plan& flushes, time_point deadline);
  // Makes a burst of the calls. Only the outputs of the last call are kept, as call 0.
  program_result<burst_clock> burst(std::span<const std::size_t> sets, const burst_plan& plan,
                                    time_point deadline);

  virtual program_result<std::vector<gpu_output>> outputs(std::size_t call) const;
  virtual std::set<output_alias> aliases(std::size_t call) const {
    return plan_.aliases(arena_->head(), call, last_sets_, scratch_begin_);
  }
  std::uint64_t row_major_outputs(std::size_t call) const {
    return plan_.row_major_outputs(arena_->head(), call);
  }
  std::size_t output_bytes(std::size_t call) const {
    return plan_.output_bytes(arena_->head(), call);
  }
  // Describes a write outside of the buffers that were handed out; nullopt if there was none.
  virtual std::optional<std::string> memory_damage();
  // Returns the floating-point operations of the last run in products and convolutions; counted for
  // references only.
  std::uint64_t flops() const { return arena_->head().flops; }
  // Returns the most recent launch of each kernel, by prepare() or by a call.
  std::vector<kernel_launch> launches() const;

 protected:
  // Stages calls on poisoned scratch memory. `seed`: of a module's constructor.
  program_result<void> stage(std::span<const std::size_t> sets, bool parameters_changed,
                             time_point deadline, std::uint64_t seed = 0);
  program_result<void> go(time_point deadline);
  gpu_context& gpu() const { return *gpu_; }
  gpu_arena& arena() const { return *arena_; }
  gpu_process& process() const { return *process_; }
  const arena_plan& plan() const { return plan_; }
  void note_scratch_use();

 private:
  program_result<void> keep_prepared();
  std::vector<gpu_context::range_pair> pairs_of(const std::vector<arena_region>& places,
                                                const gpu_tensors& tensors) const;
  void write(const std::vector<arena_region>& to, const gpu_tensors& from);
  bool holds(const std::vector<arena_region>& places, const gpu_tensors& written) const;

  gpu_context* gpu_;
  gpu_arena* arena_;
  gpu_process* process_;
  arena_plan plan_;
  std::uint64_t scratch_begin_ = 0;     // end of the memory that prepare() has allocated
  unsigned char poison_ = poison_byte;  // of the last run; runs alternate between the two bytes
  std::uint64_t poisoned_end_ = 0;      // end of the scratch memory that holds it
  std::uint64_t row_major_outputs_ = 0;
  std::vector<std::size_t> last_sets_;
};

}  // namespace hone
