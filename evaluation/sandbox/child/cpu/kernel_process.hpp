#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "evaluation/sandbox/child/cpu/kernel_queue.hpp"
#include "evaluation/sandbox/child/cpu/kernel_table.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// The process that runs a candidate's kernels for its session. Kernels are native code, which could
// answer the judge instead of the session, or skip the host program. So they run where they reach
// the arena behind its head, what prepare() has made, and nothing else. Launches are queued, as on
// a GPU, and run before the host program next reads or writes a tensor. At all other times the
// process is stopped, so that nothing changes what an operator has checked. A launch passes all
// checks that CUDA would make before it is queued. Confined to the session's thread.
class kernel_process final : public kernel_launcher {
 public:
  // Forks the process, which closes all descriptors but its own and `object`, the candidate's
  // shared object, and unmaps the arena's head. Must be called before the
  // session is confined. Throws std::system_error.
  kernel_process(int object, arena_head& head, std::uint64_t private_bytes);

  pid_t pid() const { return pid_; }
  // Waits until the kernels are loaded. Throws std::runtime_error if they cannot be. Must be called
  // once, before launches.
  void await_kernels();

  void launch(const std::string& kernel, const std::vector<std::int64_t>& grid,
              const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
              const std::vector<c10::IValue>& arguments) override;
  // Runs the queued launches. Throws program_error if one of them could not go on. If the process
  // has ended, this process ends in the same way, as it would have with the kernels in it.
  void synchronize() override;

  // Begins a run: drops what an earlier one has left in the queue. Before the first launch, shared
  // memory is filled with poison.
  void begin_run(unsigned char poison);
  // Returns true if a launch wrote beyond the dynamic shared memory that it asked for.
  bool shared_overrun() const { return queue_->shared_overrun != 0; }

 private:
  void run_queue();
  void await_stop();
  // Ends this process as that one has ended. `status`: its wait status.
  [[noreturn]] void end_alike(int status);
  [[noreturn]] void end_alike();

  kernel_queue* queue_;
  arena_head* head_;
  unique_fd socket_;  // open until the kernels are loaded
  pid_t pid_ = -1;
  kernel_table kernels_;
  std::uint64_t used_ = 0;  // words of the queue
};

}  // namespace hone
