#pragma once

#include <cstdint>
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

// Thrown if a program cannot be used. The message names the line as "python:LINE".
struct program_error : std::runtime_error {
  program_error(Outcome why, const std::string& message)
      : std::runtime_error(message), outcome(why) {}
  Outcome outcome;  // rejected, compile_error, crash or launch_error
};

// Launches the kernels of a host program: the device's side of the operators hone::launch,
// hone::stream, hone::join and hone::synchronize. Confined to one thread.
class kernel_launcher {
 public:
  virtual ~kernel_launcher() = default;
  // Launches a kernel. `arguments` are tensors, ints, floats and bools. Throws program_error
  // (launch_error) before anything runs.
  virtual void launch(const std::string& kernel, const std::vector<std::int64_t>& grid,
                      const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
                      const std::vector<c10::IValue>& arguments) = 0;
  // stream(k): work that follows goes to side stream k, or to the main stream if k is 0. join():
  // work that follows starts after all earlier work. A device with a single queue ignores both.
  virtual void use_stream(std::int64_t /*k*/) {}
  virtual void join_streams() {}
  // Called before the host program reads or writes a tensor's contents. Must have run all launches
  // when it returns, unless the device keeps launches and operators in order itself.
  virtual void synchronize() {}
};

// The number of side streams: programs may call stream(0) to stream(8).
inline constexpr std::int64_t side_streams = 8;

// A TorchScript program: a function `forward`, an optional function `prepare`, and other functions
// that these call. It is compiled with the names that Python programs use, checked on the graph
// that runs, and executed without any optimization, so that eager execution stays eager. Confined
// to one thread.
class torchscript_program {
 public:
  // Throws program_error. `inputs` and `parameters` are the numbers of arguments that the task
  // prescribes. The front end overflows the stack on deep nesting, so programs must be constructed
  // in a process that may die.
  torchscript_program(const std::string& source, std::size_t inputs, std::size_t parameters);
  ~torchscript_program();
  torchscript_program(torchscript_program&&) noexcept;

  // Returns the names of the kernels that the program launches, each once: those of prepare(), then
  // those of forward(), in the order of the text.
  const std::vector<std::string>& launches() const;
  // Returns a text that two programs share if they differ only in names, comments and unused
  // results. Kernels are numbered by their places in launches().
  const std::string& normal_form() const;
  // Returns the number of convolutions in forward()'s text.
  std::size_t convolutions() const;
  bool has_prepare() const;

  // Returns the arguments that follow the inputs in a call: the elements of prepare()'s result, or
  // the parameters themselves if the program has no prepare().
  std::vector<c10::IValue> prepare(const std::vector<at::Tensor>& parameters);
  // Runs forward() and returns the outputs in order. Clears `arguments`. Output i is converted to
  // row-major order if bit i of `row_major` is set. Exceptions that the program raises pass
  // through.
  std::vector<at::Tensor> forward(std::vector<c10::IValue>& arguments, std::uint64_t row_major = 0);

  // Sets the launcher for this thread, which is not owned. With null, every launch is an error.
  static void set_launcher(kernel_launcher* launcher);
  // Makes GPU 0 the device that this process judges, which "cuda" in a program means. Otherwise it
  // is the CPU. Must be called at most once, before warm_up().
  static void judge_on_gpu();
  // Prepares a process for its first program: registers the launch operators, compiles the
  // functions of functional.py, and runs a few operators.
  static void warm_up();
  // Sets LibTorch's settings of the calling thread. Must be called on every thread that runs
  // programs, except the one that has called warm_up().
  static void enter_thread();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
