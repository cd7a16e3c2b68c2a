#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/program/source.hpp"
#include "evaluation/sandbox/client/module_interpreter.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"
#include "process/child_process.hpp"
#include "process/temporary_folder.hpp"
#include "process/unique_fd.hpp"
#include "tasks/settings.hpp"

namespace hone {

// The head of an arena in GPU memory: a file in host memory, which the processes that work in the
// arena map as well. Owns the file and its mapping.
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

// Resources of a process on a GPU: its arena, the judge's kernels and its launch core.
struct gpu_attachment {
  std::string handle;  // the arena's CUipcMemHandle, as bytes
  std::uint64_t bytes = 0;
  int head = -1;                // descriptor of the arena's head; not owned
  std::string tools;            // cubin of the judge's kernels
  std::string spoil_symbol;     // kernel that leaves poison in shared memory
  std::string scramble_symbol;  // kernel that makes inputs readable
  std::string begins;           // of Python modules: a CUipcEventHandle, as bytes
  // The launch core, to which the process is pinned once it is ready; -1: any core.
  int core = -1;
};

// The settings with which a process opens programs: a variant's own, or a baseline's.
struct opened_settings : settings {
  bool cudnn_tf32 = false;  // convolutions may use TF32 and products may not, PyTorch's default
  std::string compiled{};   // shared object that runs instead of the reference; empty: none
  bool operator==(const opened_settings&) const = default;
};

// Flushes of the L2 cache before a timed call. While the device executes them, the host gets ahead
// of the device.
struct flush_plan {
  std::uint64_t cache_bytes = 0;  // size of the L2 cache
  std::uint32_t times = 1;
};

// Calls without a pause between them.
struct burst_plan {
  std::uint32_t repeats = 1;   // of all calls
  std::uint32_t warm_ups = 2;  // calls that precede the burst and do not count
  bool traced = false;         // adds CUPTI's clock
};

// The program hone-gpu-sandbox on one GPU. It serves one session after another: each open() drops
// the programs of the session before. Or Python, which serves one session of a module (runner.py).
// Every command has a deadline, and a command that misses it
// has timed out. The process is killed if the command does not end soon after, or if the GPU's
// context is lost. Confined to one thread; the process dies with that thread.
class gpu_process {
 public:
  // Starts the process without waiting for it: it takes seconds to load its libraries and to make a
  // context. `visible` is the value of CUDA_VISIBLE_DEVICES in the process. `driver_cache`: the
  // folder, made if it can be, in which the driver keeps what it compiles for cuDNN in the process,
  // and which is not removed; empty: a folder of the process's own. What a process runs may change
  // what lies there, so only processes of trusted programs may share it. Throws std::runtime_error.
  explicit gpu_process(const std::string& visible, const std::filesystem::path& driver_cache = {});
  // Starts Python for one session of a module. `python` must be that of GPUs.
  gpu_process(const module_interpreter& python, const std::string& visible);

  // Gives the process its resources. Waits for it only if they are larger than what its socket
  // holds, at most two minutes. Must be called once. Throws std::runtime_error.
  void attach(const gpu_attachment& attachment);
  // Waits until the attached process is ready, at most two minutes. Must be called before any
  // command is given. Throws std::runtime_error if the process cannot be used.
  void await_ready();
  // Returns true if the process is ready and has not ended.
  bool alive();
  // Tells the process to end, without waiting for it. The destructor waits.
  void send_kill() const { process_.send_kill(); }
  // Returns a number that differs from those of all other processes that this program has started.
  std::uint64_t serial() const { return serial_; }

  // Opens a session with these programs. `artifact` is null for references, which launch no
  // kernels.
  program_result<opened_programs> open(const std::vector<program_source>& programs,
                                       const schema::Artifact::Reader* artifact,
                                       const opened_settings& asked, time_point deadline);
  program_result<void> stage(const record<schema::Command>& command, time_point deadline);
  // Runs the staged calls.
  program_result<void> go(time_point deadline);
  // Makes the runs of a study on the staged call of a reference.
  program_result<void> study(const study_plan& plan, time_point deadline);
  // Runs the staged calls, each timed by itself. Afterwards the arena's head holds a clock per
  // call. `keys` make the inputs readable: one key per input, by call.
  program_result<void> time(const std::vector<std::vector<std::uint64_t>>& keys,
                            const flush_plan& flushes, time_point deadline);
  // Makes a burst of the staged calls. Afterwards the head holds its clocks.
  program_result<void> burst(const burst_plan& plan, time_point deadline);

  // Python modules: begin_turns() begins the staged calls, for which the process waits in the
  // arena's head. pass_turn() says that the inputs of call `turn`, from 1, become readable, and
  // waits until the process says that its outputs are there. end_turns() ends the last call.
  program_result<void> begin_turns(arena_head& head, time_point deadline);
  program_result<void> pass_turn(arena_head& head, std::uint32_t turn, time_point deadline);
  program_result<void> end_turns(time_point deadline);
  // freeze() stops the process on the host, so that it launches nothing. thaw() continues it.
  void freeze() const;
  void thaw() const;

 private:
  std::string name() const;  // in messages
  void start(child_options options, const std::string& visible);
  // A message of the process, and whether it came after the deadline.
  struct answer {
    std::vector<char> bytes;
    bool is_late = false;
  };
  program_result<void> send(const std::vector<char>& bytes, std::span<const int> descriptors,
                            time_point deadline);
  program_result<answer> receive(time_point deadline);
  program_result<record<schema::Reply>> read_reply(answer given);
  program_result<record<schema::Reply>> request(const std::vector<char>& bytes,
                                                std::span<const int> descriptors,
                                                time_point deadline);
  program_result<void> execute(const record<schema::Command>& command,
                               schema::Reply::Which expected, time_point deadline);
  program_failure end(bool timed_out);

  std::uint64_t serial_;
  std::optional<temporary_folder> own_cache_;  // of the driver, if it is not kept
  child_process process_;
  unique_fd socket_;
  int core_ = -1;
  bool ready_ = false;
  bool runs_module_ = false;
  bool runs_candidate_ = false;  // a module's, which can write to the socket
  bool is_open_ = false;
};

}  // namespace hone
