#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "evaluation/devices/values.hpp"

namespace hone {

// What a batch of calls took. `device_ns` is the clock that scores: the child's processor time.
struct batch_clock {
  double device_ns = 0;
  double wall_ns = 0;
  double outside_ns =
      0;  // device time since the last run that the clock did not see; 0 where prepare() ran
};

// Memory that two tensors of a call share, by what the second one is.
struct shared_memory_of_output {
  enum class with { input, parameter, output, earlier_call, foreign, itself };
  std::size_t output = 0;
  with what = with::input;
  std::size_t index = 0;
  auto operator<=>(const shared_memory_of_output&) const = default;
};

// Programs loaded into a process of their own on the host, and the buffers that they work on: the
// same interface for references and candidates. Protocols (evaluation/judge) are written against
// it; gpu_session is its like on a GPU.
//
// A session is used like this: arrange() makes room, write_*() fills it, run() makes calls, then
// outputs, aliases and damage are read until the next run. Not for more than one thread. Offsets,
// addresses and contents that come from the process are not believed.
class program_session {
 public:
  using deadline = std::chrono::steady_clock::time_point;
  virtual ~program_session() = default;

  // Makes room for `sets` sets of inputs, each at addresses of its own, and chooses which program
  // runs. Contents of inputs and parameters are undefined afterwards. Throws std::length_error
  // where they do not fit.
  virtual void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                       const std::vector<tensor_layout>& parameters, std::size_t sets) = 0;
  void write_inputs(std::size_t set, const value_set& values);
  // Where a set's inputs are written in place instead, row-major; what is written counts with the
  // next run.
  virtual std::vector<std::span<std::byte>> input_places(std::size_t set) = 0;
  // New parameters: prepare() runs again, untimed, before the next calls.
  virtual void write_parameters(const value_set& values) = 0;
  // Runs prepare() now. It may read whatever memory holds, so inputs that it must not know are
  // written behind this.
  virtual std::optional<program_failure> prepare(deadline until) = 0;

  // One call for each entry of `sets`, in order, on freshly poisoned scratch memory; all outputs
  // are kept until the next run. The process stands still from the end of one run to the start of
  // the next.
  virtual std::variant<batch_clock, program_failure> run(std::span<const std::size_t> sets,
                                                         deadline until) = 0;

  // Of the last run; the process stands still while these look. A malformed output is a failure.
  virtual std::variant<value_set, program_failure> outputs(std::size_t call) = 0;
  virtual std::set<shared_memory_of_output> aliases(std::size_t call) = 0;
  // Bytes that the call's outputs take in memory: fewer than their elements' where a stride is 0.
  virtual std::size_t output_bytes(std::size_t call) = 0;
  virtual bool inputs_hold(std::size_t set, const value_set& values) = 0;
  virtual bool parameters_hold(const value_set& values) = 0;
  // What was written outside of the buffers that were handed out, or nothing.
  virtual std::optional<std::string> memory_damage() = 0;
};

inline void program_session::write_inputs(std::size_t set, const value_set& values) {
  const auto places = input_places(set);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].bytes.size() != places.at(i).size())
      throw std::out_of_range("an input does not fit its buffer");
    std::copy(values[i].bytes.begin(), values[i].bytes.end(), places[i].begin());
  }
}

}  // namespace hone
