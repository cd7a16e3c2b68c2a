#pragma once

#include <ATen/core/ivalue.h>
#include <cuda.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "evaluation/sandbox/child/gpu/allocator.hpp"
#include "evaluation/sandbox/child/gpu/captured_call.hpp"
#include "evaluation/sandbox/child/gpu/compiled_program.hpp"
#include "evaluation/sandbox/child/gpu/judge_tools.hpp"
#include "evaluation/sandbox/child/gpu/streams.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"

namespace hone {

// Waits until the device has finished all work, on every stream. Throws c10::Error if a kernel has
// failed.
void await_device();

// The programs of a session, and the calls of one of them that are staged. A call executes the
// program eagerly or, if the variant's settings ask for it, replays the CUDA graph that was
// captured when the call was staged. Includes LibTorch: only for sources of the sandbox programs.
// Confined to one thread at a time.
class staged_calls {
 public:
  // The arguments must outlive this object.
  staged_calls(call_streams& streams, gpu_allocator& memory, const judge_tools& tools)
      : streams_(&streams), memory_(&memory), tools_(&tools) {}

  // Compiles the programs of a session. Throws program_error.
  void open(schema::Open::Reader request);
  // Drops the programs and all that was made with them.
  void close();
  const torchscript_program& first_program() const { return programs_.front(); }

  // Replaces the staged calls. Runs prepare() at once if the parameters have changed. Its results
  // lie at the start of the calls' scratch memory, and the calls' own tensors follow. Captured
  // calls are kept if the request is the last one again, because all addresses are the same then.
  void stage(schema::StageCalls::Reader request);
  // Lets the next stage() capture its calls anew, whatever the request.
  void forget_request() { captured_for_ = {}; }
  std::size_t size() const { return stacks_.size(); }

  // Puts a call on the main stream, with the side streams joined to its end. Returns its outputs.
  std::vector<at::Tensor> call(std::size_t index);
  // Puts a call on the main stream like call(). Every such call allocates the same memory.
  std::vector<at::Tensor> call_in_same_place(std::size_t index);
  // Makes the runs of a study on call 0, which is executed eagerly. Adds their outputs to `outputs`
  // and returns the number of recorded decisions.
  std::uint64_t study(schema::StudyCalls::Reader request,
                      std::vector<std::vector<at::Tensor>>& outputs);
  // Makes the inputs of a call readable on the main stream, with one key per input.
  void make_readable(std::size_t index, const capnp::List<std::uint64_t>::Reader& keys) const;

 private:
  at::Tensor tensor(schema::Layout::Reader layout, std::uint64_t offset) const;
  void prepare(schema::StageCalls::Reader request);
  // Runs the staged program. Clears `arguments`.
  std::vector<at::Tensor> forward(std::vector<c10::IValue>& arguments);
  // Runs a call eagerly before its capture: cuDNN times its algorithms, which it cannot do while
  // calls are captured, and remembers the fastest. The call leaves no trace in the arena.
  void tune();
  captured_call capture(std::vector<c10::IValue> stack);
  void forget();

  call_streams* streams_;
  gpu_allocator* memory_;
  const judge_tools* tools_;
  bool uses_graph_ = false;
  std::vector<torchscript_program> programs_;
  std::optional<compiled_program> compiled_;  // runs instead of the first program
  // Results of prepare() by program; nullopt before the first stage() and after parameters changed.
  std::vector<std::optional<std::vector<c10::IValue>>> prepared_;
  std::uint32_t program_ = 0;
  std::uint64_t row_major_outputs_ = 0;  // a bit per output
  std::uint64_t calls_begin_ = 0;        // scratch memory of the calls
  std::uint64_t calls_end_ = 0;
  std::vector<std::vector<c10::IValue>> stacks_;  // arguments by call
  // Address and bytes of each input, by call.
  std::vector<std::vector<std::pair<CUdeviceptr, std::uint64_t>>> inputs_;
  // A study needs several times the memory of its tensors. Where the arena is too small for that,
  // only the outputs lie in it.
  bool studies_need_room_ = false;
  std::vector<captured_call> graphs_;
  record<schema::StageCalls> captured_for_;  // the request that graphs_ belong to; empty: none
};

}  // namespace hone
