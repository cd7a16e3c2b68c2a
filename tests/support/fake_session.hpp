#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/devices/program_session.hpp"
#include "tasks/task_file.hpp"

namespace hone::testing_support {

// A session without a process: what it computes, how long that takes and how it misbehaves are
// functions. Remembers what it was asked, so that protocols can be watched from inside.
class fake_session final : public program_session {
 public:
  using compute_function =
      std::function<value_set(const value_set& inputs, const value_set& parameters)>;

  struct behaviour {
    std::vector<compute_function> programs;
    std::function<double()> call_ns = [] { return 50e3; };
    double outside_ns = 0;
    std::size_t output_bytes = 0;  // 0: dense
    std::function<std::optional<program_failure>(std::size_t run)> fails = [](std::size_t) {
      return std::nullopt;
    };
    std::function<void(value_set& inputs, value_set& parameters)>
        tamper;  // with its arguments, after each call
    std::set<shared_memory_of_output> aliases;
    std::optional<std::string> damage;
  };
  struct seen_call {
    std::size_t run = 0;
    std::size_t set = 0;
    value_set inputs;
    value_set parameters;
  };

  explicit fake_session(behaviour b) : behaviour_(std::move(b)) {}

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
  void write_parameters(const value_set& values) override { parameters_ = values; }
  std::optional<program_failure> prepare(deadline /*until*/) override {
    prepared.push_back({runs, 0, inputs_.empty() ? value_set{} : inputs_.front(), parameters_});
    return std::nullopt;
  }

  std::variant<batch_clock, program_failure> run(std::span<const std::size_t> sets,
                                                 deadline /*until*/) override {
    if (auto failure = behaviour_.fails(runs)) return *failure;
    outputs_.clear();
    batch_clock clock;
    for (const std::size_t set : sets) {
      if (remember) calls.push_back({runs, set, inputs_.at(set), parameters_});
      outputs_.push_back(behaviour_.programs.at(program_)(inputs_.at(set), parameters_));
      if (behaviour_.tamper) behaviour_.tamper(inputs_.at(set), parameters_);
      clock.device_ns += behaviour_.call_ns();
    }
    clock.wall_ns = clock.device_ns + 55e3;
    clock.outside_ns = behaviour_.outside_ns;
    ++runs;
    return clock;
  }

  std::variant<value_set, program_failure> outputs(std::size_t call) override {
    checked_runs.push_back(runs - 1);
    return outputs_.at(call);
  }
  std::set<shared_memory_of_output> aliases(std::size_t /*call*/) override {
    return behaviour_.aliases;
  }
  std::size_t output_bytes(std::size_t call) override {
    return behaviour_.output_bytes > 0 ? behaviour_.output_bytes : total_bytes(outputs_.at(call));
  }
  bool inputs_hold(std::size_t set, const value_set& values) override {
    return same(inputs_.at(set), values);
  }
  bool parameters_hold(const value_set& values) override { return same(parameters_, values); }
  std::optional<std::string> memory_damage() override { return behaviour_.damage; }

  bool remember = true;
  std::size_t runs = 0;
  std::vector<seen_call> calls;
  std::vector<seen_call> prepared;        // before which run, and what the first set held
  std::vector<std::size_t> checked_runs;  // whose outputs were looked at

 private:
  static value_set blank(const std::vector<tensor_layout>& layouts) {
    value_set values;
    for (const tensor_layout& layout : layouts)
      values.push_back({layout, std::vector<std::byte>(layout.bytes(), std::byte{0xff})});
    return values;
  }
  static bool same(const value_set& a, const value_set& b) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (a.at(i).bytes != b[i].bytes) return false;
    }
    return true;
  }

  behaviour behaviour_;
  std::size_t program_ = 0;
  std::vector<value_set> inputs_;
  value_set parameters_;
  std::vector<value_set> outputs_;
};

// y = x * factor + w, for tasks with one input and at most one parameter of its shape.
inline value_set scaled(const value_set& inputs, const value_set& parameters, double factor = 2) {
  std::vector<double> y = to_doubles(inputs.at(0));
  const std::vector<double> w =
      parameters.empty() ? std::vector<double>(y.size(), 1.0) : to_doubles(parameters[0]);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * factor + w[i];
  return {from_doubles(y, inputs[0].layout)};
}

// The task of scaled(), whose reference nobody compiles here.
inline task scale_task(const std::string& more = "") {
  return parse_task(
      "name = \"scale\"\nsummary = \"y = 2 x + w\"\nreference = '''\ndef forward(x: Tensor, w: "
      "Tensor) -> Tensor:\n    return x * 2.0 + w\n'''\n" +
          more +
          "[[input]]\nname = \"x\"\nshape = [\"N\"]\n[[parameter]]\nname = \"w\"\nshape = [\"N\"]\n"
          "[[case]]\nsizes = { N = 640 }\ntimed = true\n[[case]]\nsizes = { N = 7 }\n",
      "scale.toml");
}

inline fake_session::behaviour right_program() {
  fake_session::behaviour b;
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    return scaled(inputs, parameters);
  }};
  return b;
}

}  // namespace hone::testing_support
