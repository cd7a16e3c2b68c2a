#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "messages/names.hpp"

namespace c10 {
struct IValue;
}
namespace at {
class Tensor;
}

namespace hone {

// Why a host program cannot be used. The message names the line as "python:LINE".
struct program_error : std::runtime_error {
  program_error(Outcome why, const std::string& message)
      : std::runtime_error(message), outcome(why) {}
  Outcome outcome;  // rejected, compile_error, crash or launch_error
};

// What a kernel launch does, behind the operator hone::launch. One thread.
class kernel_launcher {
 public:
  virtual ~kernel_launcher() = default;
  // `arguments` are tensors, ints, floats and bools. Throws program_error (launch_error)
  // before anything runs.
  virtual void launch(const std::string& kernel, const std::vector<std::int64_t>& grid,
                      const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
                      const std::vector<c10::IValue>& arguments) = 0;
  // stream(k): what follows goes to side stream k, 0 the main one; join(): what follows comes after
  // everything before it. A device with one queue has nothing to do.
  virtual void use_stream(std::int64_t /*k*/) {}
  virtual void join_streams() {}
};

inline constexpr std::int64_t side_streams = 8;  // stream(0) to stream(8)

// A TorchScript program: `forward`, optionally `prepare`, helpers. Compiled with names as people
// write them, checked on the graph that runs, executed without any optimisation so that eager is
// eager. Not for more than one thread.
class torchscript_program {
 public:
  // Throws program_error. `inputs` and `parameters` are the numbers of arguments that the task
  // fixes. The front end overflows the stack on deep nesting: only construct one in a process that
  // may die.
  torchscript_program(const std::string& source, std::size_t inputs, std::size_t parameters);
  ~torchscript_program();
  torchscript_program(torchscript_program&&) noexcept;

  // Kernels that launches name, sorted.
  const std::vector<std::string>& launches() const;
  bool has_prepare() const;

  // What follows the inputs in a call: prepare's result spread, or the parameters themselves.
  std::vector<c10::IValue> prepare(const std::vector<at::Tensor>& parameters);
  // `arguments` is consumed; the outputs in order. Throws what the program raises.
  std::vector<at::Tensor> forward(std::vector<c10::IValue>& arguments);

  // Where launches of this thread go; null: nowhere, and they are errors.
  static void set_launcher(kernel_launcher* launcher);
  // Where tensors of this process's programs lie: "cuda" in a program means this device. A CPU
  // unless set; once, before warm_up().
  static void judge_on_gpu();
  // Registers the launch operator, compiles the functional names, runs a few operators: what a
  // zygote does once.
  static void warm_up();
  // What LibTorch keeps for each thread: for every other than the one that has warmed up.
  static void enter_thread();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
