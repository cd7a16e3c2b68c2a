#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "evaluation/compile/cuda/nvrtc/block_compiler.hpp"
#include "messages/record.hpp"
#include "process/unique_fd.hpp"
#include "process/visible_files.hpp"

namespace hone {

// Serves compilations over a socket, each in a separate process that is forked from this process.
// Forking a process takes milliseconds, and so does reaping it. Both happen while no block
// compiles, or while a block compiles if there are enough cores. Confined to one thread.
class compile_server {
 public:
  // Throws std::runtime_error if NVRTC does not work here.
  explicit compile_server(int socket);

  // Sends the greeting: NVRTC's version and CUDA's include folders.
  void greet() const;
  // Reads CUDA's headers into memory, for the compilations, which find no other files. Must be
  // called once, before serve(). Throws std::runtime_error if files cannot be hidden here.
  void read_headers();
  // Serves until the socket closes, which throws connection_lost.
  [[noreturn]] void serve();

 private:
  // The number of processes that wait for a block, and the block that each of them compiles to warm
  // up. On few cores a warm-up slows down the block that compiles meanwhile. There, only one
  // process is prepared at that time, and its warm-up is almost empty.
  struct readiness {
    std::size_t idle = 2;     // processes while no block compiles
    std::size_t working = 1;  // processes while a block compiles
    std::string_view warm_up = "extern \"C\" __global__ void hone_nothing() {}\n";
    static readiness for_this_machine();
  };
  // A fork that waits for a block, and its socket. The destructor kills and reaps the process.
  struct waiting_process {
    pid_t pid = -1;
    unique_fd socket;

    waiting_process(pid_t id, unique_fd to_it) : pid(id), socket(std::move(to_it)) {}
    waiting_process(const waiting_process&) = delete;
    waiting_process& operator=(const waiting_process&) = delete;
    ~waiting_process();
    void stop() const;
  };

  void warm_up() const;
  void fork_ready(std::size_t count);
  record<schema::NvrtcResult> serve_one(const record<schema::NvrtcJob>& job);
  void hand_out(const record<schema::NvrtcJob>& job);
  static record<schema::NvrtcResult> answer_of(waiting_process& one,
                                               const schema::NvrtcJob::Reader& job);
  [[noreturn]] void confine_and_compile(int socket);

  int socket_;
  readiness readiness_ = readiness::for_this_machine();
  const void* heap_;  // the heap's first address
  block_compiler compiler_;
  visible_files files_;  // of compilations
  std::deque<std::unique_ptr<waiting_process>> ready_;
  std::unique_ptr<waiting_process> working_;  // compiles, or has compiled
  std::optional<record<schema::NvrtcJob>> last_;
  rlim_t reserved_ = 0;  // bytes of address space before any block is compiled
};

}  // namespace hone
