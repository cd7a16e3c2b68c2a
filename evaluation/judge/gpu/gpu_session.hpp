#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/devices/arena_plan.hpp"
#include "evaluation/judge/gpu/judge_gpu.hpp"
#include "evaluation/sandbox/gpu_process.hpp"

namespace hone {

// Device memory that a process on the GPU shares with the judge, and its head in the host's memory.
// Owned by the judge, so it outlives any process that works in it. Offsets and sizes are bytes.
class gpu_arena {
 public:
  gpu_arena(const judge_gpu& gpu, std::uint64_t bytes);

  CUdeviceptr at(std::uint64_t offset) const { return memory_.at() + offset; }
  std::uint64_t size() const { return memory_.bytes(); }
  arena_head& head() const { return *head_; }
  int head_descriptor() const { return head_.descriptor(); }
  const std::string& handle() const { return handle_; }

  // What is known to have been used since the last time is poisoned again.
  void poison_used(const judge_gpu& gpu);
  // All of it is: a program may have written anywhere, and the next one is neither to find that nor
  // to be blamed for it.
  void poison_all(const judge_gpu& gpu);
  void poison(const judge_gpu& gpu, std::uint64_t begin, std::uint64_t end,
              unsigned char with = poison_byte) const;
  void use_from(std::uint64_t begin) { dirty_begin_ = dirty_end_ = begin; }
  void note_use(std::uint64_t end) { dirty_end_ = std::max(dirty_end_, std::min(end, size())); }
  std::uint64_t dirty_end() const { return dirty_end_; }

 private:
  gpu_memory memory_;
  shared_head head_;
  std::string handle_;
  std::uint64_t dirty_begin_ = 0;  // outside of these two all is poison
  std::uint64_t dirty_end_ = 0;
};

// Tensors in memory that only the judge maps. The memory only grows, so there may be more of it
// than tensors.
struct gpu_tensors {
  std::vector<tensor_layout> layouts;
  std::vector<gpu_memory> memory;
};

// An output in the arena.
struct gpu_output {
  tensor_layout layout;
  std::vector<std::int64_t> strides;
  CUdeviceptr at = 0;
};

// Programs open in a process on the GPU, and the buffers that they work on: arrange() makes room,
// the judge writes contents into it, runs make calls, then outputs, aliases and damage are read
// until the next run. The same for references and candidates. Not used any more once its process
// has been replaced. One thread.
class gpu_session {
 public:
  gpu_session(judge_gpu& gpu, gpu_arena& arena, gpu_process& process)
      : gpu_(&gpu), arena_(&arena), process_(&process) {}

  // Room for `sets` sets of inputs, each at addresses of its own, from `begin` on. Throws
  // std::length_error where they do not fit.
  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets,
               std::uint64_t begin = 0);
  CUdeviceptr input(std::size_t set, std::size_t i) const {
    return arena_->at(plan_.inputs(set).at(i).begin);
  }
  CUdeviceptr parameter(std::size_t i) const { return arena_->at(plan_.parameters().at(i).begin); }
  // Of the shapes that it was arranged for.
  void write_inputs(std::size_t set, const gpu_tensors& from) { write(plan_.inputs(set), from); }
  void write_parameters(const gpu_tensors& from) { write(plan_.parameters(), from); }
  // Whether they still hold what was written.
  bool inputs_hold(std::size_t set, const gpu_tensors& written) const {
    return holds(plan_.inputs(set), written);
  }
  bool parameters_hold(const gpu_tensors& written) const {
    return holds(plan_.parameters(), written);
  }

  // prepare() runs now, untimed: what it must not know is written behind this.
  std::optional<program_failure> prepare(time_point until);
  // One call an entry of `sets`, in order, on poisoned scratch memory; all outputs are kept until
  // the next run.
  std::optional<program_failure> run(std::span<const std::size_t> sets, time_point until);
  // prepare() and run() at once: for a reference, from which nothing is kept secret.
  std::optional<program_failure> run_anew(std::span<const std::size_t> sets, time_point until);
  // As run(), each call clocked by itself behind `flushes`. Inputs must have been made unreadable
  // with `keys`, by call and input; each becomes readable when its call's turn comes.
  std::variant<std::vector<call_clock>, program_failure> time(
      std::span<const std::size_t> sets, const std::vector<std::vector<std::uint64_t>>& keys,
      const flush_plan& flushes, time_point until);
  // The calls over and over without a pause; of their outputs only the last call's are kept, as
  // call 0.
  std::variant<train_clock, program_failure> train(std::span<const std::size_t> sets,
                                                   std::uint32_t repeats, bool traced,
                                                   time_point until);

  std::variant<std::vector<gpu_output>, program_failure> outputs(std::size_t call) const;
  std::set<shared_memory_of_output> aliases(std::size_t call) const {
    return plan_.aliases(arena_->head(), call, last_sets_, scratch_begin_);
  }
  std::size_t output_bytes(std::size_t call) const {
    return plan_.output_bytes(arena_->head(), call);
  }
  std::optional<std::string> memory_damage();
  // Of the last run, in products and convolutions; references alone count them.
  std::uint64_t flops() const { return arena_->head().flops; }
  // How kernels were launched last, by prepare() or by a call.
  std::vector<kernel_launch> launches() const;

 private:
  std::optional<program_failure> stage(std::span<const std::size_t> sets, bool parameters_changed,
                                       time_point until);
  std::optional<program_failure> go(time_point until);
  std::optional<program_failure> keep_prepared();
  void write(const std::vector<arena_region>& to, const gpu_tensors& from);
  bool holds(const std::vector<arena_region>& places, const gpu_tensors& written) const;
  void note_scratch_use();

  judge_gpu* gpu_;
  gpu_arena* arena_;
  gpu_process* process_;
  arena_plan plan_;
  std::uint64_t scratch_begin_ = 0;  // behind what prepare() made
  bool other_poison_ = false;        // runs take turns
  std::vector<std::size_t> last_sets_;
};

}  // namespace hone
