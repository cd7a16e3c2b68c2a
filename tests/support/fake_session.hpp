#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone::testing_support {

// A session without a process. Functions define the outputs of its programs, the time of a call and
// any misbehaviour. It records its calls, so that tests can check what a protocol asks for.
class fake_session final : public program_session {
 public:
  using compute_function =
      std::function<value_set(const value_set& inputs, const value_set& parameters)>;

  struct behavior {
    std::vector<compute_function> programs;
    std::function<double()> call_ns = [] { return 50e3; };
    std::function<double()> outside_ns = [] { return 0.0; };
    // Bytes that the outputs of a call occupy; 0: the bytes of all their elements.
    std::size_t output_bytes = 0;
    std::function<program_result<void>(std::size_t run)> fails = [](std::size_t) {
      return program_result<void>();
    };
    // Changes the inputs or parameters of a call after the call.
    std::function<void(value_set& inputs, value_set& parameters)> tamper;
    std::set<output_alias> aliases;
    std::uint64_t row_major = 1;
    std::uint64_t decisions = 0;  // that a study finds
    std::optional<std::string> damage;
  };
  struct seen_call {
    std::size_t run = 0;
    std::size_t set = 0;
    value_set inputs;
    value_set parameters;
  };

  explicit fake_session(behavior b) : behavior_(std::move(b)) {}

  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets) override {
    program_ = program;
    inputs_.assign(sets, blank(inputs));
    parameters_ = blank(parameters);
  }
  std::vector<std::span<std::byte>> input_places(std::size_t set) override {
    std::vector<std::span<std::byte>> places;
    for (tensor_value& value : inputs_.at(set)) places.emplace_back(value.bytes);
    return places;
  }
  void write_parameters(const value_set& values, std::uint64_t /*seed*/) override {
    parameters_ = values;
  }
  program_result<void> prepare(time_point /*deadline*/) override {
    prepared.push_back({runs, 0, inputs_.empty() ? value_set{} : inputs_.front(), parameters_});
    return {};
  }

  void require_row_major(std::uint64_t outputs) override { required_row_major = outputs; }
  std::uint64_t row_major_outputs(std::size_t /*call*/) override { return behavior_.row_major; }
  program_result<batch_clock> run(std::span<const std::size_t> sets, time_point deadline,
                                  const input_writer& write = nullptr) override {
    allowed.push_back(deadline - time_point::clock::now());
    if (auto fails = behavior_.fails(runs); !fails) return failed(fails.error());
    outputs_.clear();
    batch_clock clock;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::size_t set = sets[i];
      if (write) write(i);
      if (remember) calls.push_back({runs, set, inputs_.at(set), parameters_});
      outputs_.push_back(behavior_.programs.at(program_)(inputs_.at(set), parameters_));
      if (behavior_.tamper) behavior_.tamper(inputs_.at(set), parameters_);
      clock.device_ns += behavior_.call_ns();
    }
    clock.wall_ns = clock.device_ns + 55e3;
    clock.outside_ns = behavior_.outside_ns();
    ++runs;
    return clock;
  }

  // Makes the same call for each run of the plan, in float64 if the run is wide, without noise.
  program_result<std::uint64_t> study(const study_plan& plan, time_point /*deadline*/) override {
    studies.push_back(plan);
    outputs_.clear();
    for (const studied_run& run : plan.runs) {
      if (auto fails = behavior_.fails(runs); !fails) return failed(fails.error());
      outputs_.push_back(run.is_wide ? behavior_.programs.at(program_)(widened(inputs_.at(0)),
                                                                       widened(parameters_))
                                     : behavior_.programs.at(program_)(inputs_.at(0), parameters_));
      ++runs;
    }
    return behavior_.decisions;
  }

  program_result<value_set> outputs(std::size_t call) override {
    checked.emplace_back(runs - 1, call);
    return outputs_.at(call);
  }
  std::set<output_alias> aliases(std::size_t /*call*/) override { return behavior_.aliases; }
  std::size_t output_bytes(std::size_t call) override {
    return behavior_.output_bytes > 0 ? behavior_.output_bytes : total_bytes(outputs_.at(call));
  }
  bool inputs_hold(std::size_t set, const value_set& values) override {
    return same(inputs_.at(set), values);
  }
  bool parameters_hold(const value_set& values) override { return same(parameters_, values); }
  std::optional<std::string> memory_damage() override { return behavior_.damage; }

  bool remember = true;
  std::size_t runs = 0;
  std::vector<seen_call> calls;
  // Calls of prepare(): the number of the next run and the contents of the first input set.
  std::vector<seen_call> prepared;
  // Calls whose outputs were read: the run, and the number of the call in it.
  std::vector<std::pair<std::size_t, std::size_t>> checked;
  std::vector<time_point::duration> allowed;  // time until the deadline, by run
  std::uint64_t required_row_major = 0;
  std::vector<study_plan> studies;

 private:
  static value_set blank(const std::vector<tensor_layout>& layouts) {
    value_set values;
    for (const tensor_layout& layout : layouts)
      values.push_back({layout, std::vector<std::byte>(layout.bytes(), std::byte{0xff})});
    return values;
  }
  static value_set widened(const value_set& values) {
    value_set wide;
    for (const tensor_value& value : values)
      wide.push_back(convert_floating(value, dtype::float64));
    return wide;
  }
  static bool same(const value_set& a, const value_set& b) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (a.at(i).bytes != b[i].bytes) return false;
    }
    return true;
  }

  behavior behavior_;
  std::size_t program_ = 0;
  std::vector<value_set> inputs_;
  value_set parameters_;
  std::vector<value_set> outputs_;
};

// Returns y = x * factor + w, for tasks with one input x and at most one parameter w of its shape;
// without a parameter, w is 1.
inline value_set scaled(const value_set& inputs, const value_set& parameters, double factor = 2) {
  std::vector<double> y = to_doubles(inputs.at(0));
  const std::vector<double> w =
      parameters.empty() ? std::vector<double>(y.size(), 1.0) : to_doubles(parameters[0]);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * factor + w[i];
  return {from_doubles(y, inputs[0].layout)};
}

// Returns the task that scaled() solves, with `more` among its keys. The tests never compile its
// reference.
inline task scale_task(const std::string& more = "") {
  return parse_task(
      "name = \"scale\"\nsummary = \"y = 2 x + w\"\nreference = '''\ndef forward(x: Tensor, w: "
      "Tensor) -> Tensor:\n    return x * 2.0 + w\n'''\n" +
          more +
          "[[input]]\nname = \"x\"\nshape = [\"N\"]\n[[parameter]]\nname = \"w\"\nshape = [\"N\"]\n"
          "[[case]]\nsizes = { N = 640 }\ntimed = true\n[[case]]\nsizes = { N = 7 }\n",
      "scale.toml");
}

// Returns the behavior of a session whose only program solves scale_task().
inline fake_session::behavior right_program() {
  fake_session::behavior b;
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    return scaled(inputs, parameters);
  }};
  return b;
}

}  // namespace hone::testing_support
