#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/program/clocks.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/tensors.hpp"

namespace hone {

using time_point = std::chrono::steady_clock::time_point;

// Memory that an output of a call shares with another tensor.
struct output_alias {
  enum class with { input, parameter, output, earlier_call, foreign, itself };
  std::size_t output = 0;
  with what = with::input;
  std::size_t index = 0;  // of the other tensor; 0 for foreign and itself
  auto operator<=>(const output_alias&) const = default;
};

// Number of outputs whose order in memory can be prescribed, a bit for each.
inline constexpr std::size_t max_marked_outputs = 64;

// A run of a reference that a study makes (evaluation/sandbox/child/common/rounding_noise.hpp).
struct studied_run {
  enum class decisions { ignore, record, replay };
  double amplitude = 0;    // of rounding noise, in errors of a correct program; may be negative
  std::uint64_t draw = 0;  // runs with the same number draw the same noise
  bool is_wide = false;    // in float64
  decisions use = decisions::ignore;
};
struct study_plan {
  std::vector<studied_run> runs;
  std::uint64_t seed = 0;  // of the noise
  bool tf32 = false;       // products and convolutions may round to TF32
  bool is_sparse = false;  // many elements of the inputs are zero
  bool has_small_inputs = false;
};

// Programs opened in a separate process, whose tensors lie in host memory. References and
// candidates have this interface, and the judge is written against it. gpu_session is its
// counterpart on a GPU.
//
// Order of use: arrange() makes room, write_inputs() and write_parameters() fill it, run() makes
// calls, and outputs, aliases and damage are read until the next run. Offsets, addresses and
// contents that the process reports are checked before use. Confined to one thread.
class program_session {
 public:
  virtual ~program_session() = default;

  // Makes room for `sets` input sets, each at its own addresses, and selects the program that runs.
  // The contents of inputs and parameters are undefined afterwards. Throws std::length_error if
  // they do not fit.
  virtual void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                       const std::vector<tensor_layout>& parameters, std::size_t sets) = 0;
  // Copies `values` into the inputs of a set. Throws std::out_of_range if a size differs.
  void write_inputs(std::size_t set, const value_set& values);
  // Returns the memory of a set's inputs, row-major, to be written in place before the next run.
  virtual std::vector<std::span<std::byte>> input_places(std::size_t set) = 0;
  // Writes new parameters. prepare() runs again, untimed, before the next calls. A Python module
  // gets the seed of its constructor, with which the task's module has the parameters `values`.
  virtual void write_parameters(const value_set& values, std::uint64_t seed = 0) = 0;
  // Runs the program's prepare() now. prepare() may read any memory of the session, so inputs that
  // it must not see are written afterwards.
  virtual program_result<void> prepare(time_point deadline) = 0;

  // Makes the program convert output i of later calls to row-major order, within the call, if bit i
  // of `outputs` is set: a caller who gets a result in another order than the reference's would do
  // that work later, when no clock runs.
  virtual void require_row_major(std::uint64_t outputs) = 0;
  // Makes one call per entry of `sets`, in order, on freshly poisoned scratch memory. Before call i
  // has its turn, `write(i)` writes its inputs, which the program cannot read earlier; without it
  // they have been written before. All outputs stay until the next run. The process is stopped from
  // the end of one run to the start of the next.
  using input_writer = std::function<void(std::size_t call)>;
  virtual program_result<batch_clock> run(std::span<const std::size_t> sets, time_point deadline,
                                          const input_writer& write = nullptr) = 0;

  // Makes the runs of a plan on input set 0 of a reference. Their outputs are those of calls 0, 1,
  // ... afterwards. Returns the number of discontinuous results that rounding may change.
  virtual program_result<std::uint64_t> study(const study_plan& plan, time_point deadline) = 0;

  // The following functions read the last run, while the process is stopped. A malformed output is
  // a failure.
  virtual program_result<value_set> outputs(std::size_t call) = 0;
  virtual std::set<output_alias> aliases(std::size_t call) = 0;
  // Returns a bit for each output of the call that is row-major.
  virtual std::uint64_t row_major_outputs(std::size_t call) = 0;
  // Returns the bytes that the call's outputs occupy. A stride of 0 makes them fewer than the
  // elements' bytes.
  virtual std::size_t output_bytes(std::size_t call) = 0;
  // Returns true if a set's inputs, or the parameters, still have these contents.
  virtual bool inputs_hold(std::size_t set, const value_set& values) = 0;
  virtual bool parameters_hold(const value_set& values) = 0;
  // Describes a write outside of the buffers that were handed out; nullopt if there was none.
  virtual std::optional<std::string> memory_damage() = 0;
  // Says that the outputs of the last run have been read, so that their memory may be returned to
  // the system.
  virtual void discard_outputs() {}
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
