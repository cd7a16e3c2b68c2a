#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/sandbox/arena_layout.hpp"
#include "evaluation/sandbox/programs.hpp"
#include "messages/record.hpp"
#include "tasks/settings.hpp"

namespace hone {

// The head of an arena whose memory is a GPU's: a file of memory of its own, which the processes
// that work in it map as well.
class shared_head {
 public:
  shared_head();  // throws std::system_error
  ~shared_head();
  shared_head(const shared_head&) = delete;
  shared_head& operator=(const shared_head&) = delete;
  int descriptor() const { return file_.get(); }
  arena_head& operator*() const { return *head_; }
  arena_head* operator->() const { return head_; }

 private:
  unique_fd file_;
  arena_head* head_ = nullptr;
};

// What a process on a GPU works with: the arena, and the judge's own kernels.
struct gpu_attachment {
  std::string handle;  // the arena's CUipcMemHandle, as bytes
  std::uint64_t bytes = 0;
  int head = -1;
  std::string tools;  // cubin
  std::string spoil_symbol;
  std::string scramble_symbol;
  int core = -1;  // that it launches from once it is ready; -1: any
};

// What comes before a timed call: flushes of the L2 cache, while which the host gets ahead of the
// device.
struct flush_plan {
  std::uint64_t cache_bytes = 0;
  std::uint32_t times = 1;
};

// The program hone-gpu-sandbox on one GPU: it runs one program after another, each `open`
// forgetting the one before. Every command has a deadline; what takes longer has timed out, and the
// process is killed where that goes on or the GPU's context is lost. Not for more than one thread;
// it dies with the thread that started it.
class gpu_process {
 public:
  // Starts it without waiting: making a context takes about a second. `visible`: what
  // CUDA_VISIBLE_DEVICES says there. Throws std::runtime_error.
  gpu_process(const std::string& visible, const gpu_attachment& attachment);

  // Waits until it is ready; throws std::runtime_error where it cannot be used. Before that no
  // command may be given.
  void await_ready();
  bool alive();  // and ready
  std::uint64_t serial() const {
    return serial_;
  }  // no other process of this program has or had it

  // The artifact's kernels may be left out (references).
  std::variant<opened_programs, session_failure> open(const std::vector<host_source>& programs,
                                                      const schema::Artifact::Reader* artifact,
                                                      const settings& asked, time_point deadline);
  std::optional<session_failure> stage(const record<schema::Command>& command, time_point deadline);
  std::optional<session_failure> go(time_point deadline);
  // Behind these the head holds the clocks.
  std::optional<session_failure> time(const std::vector<std::vector<std::uint64_t>>& keys,
                                      const flush_plan& flushes, time_point deadline);
  std::optional<session_failure> train(std::uint32_t repeats, bool traced, time_point deadline);

 private:
  std::variant<record<schema::Reply>, session_failure> request(const std::vector<char>& bytes,
                                                               std::span<const int> descriptors,
                                                               time_point deadline);
  std::optional<session_failure> run(const record<schema::Command>& command,
                                     schema::Reply::Which expected, time_point deadline);
  session_failure end(bool timed_out);

  std::uint64_t serial_;
  child_process process_;
  unique_fd socket_;
  int core_;
  bool ready_ = false;
};

}  // namespace hone
