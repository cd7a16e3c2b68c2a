#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "evaluation/devices/program_session.hpp"
#include "evaluation/judge/comparison.hpp"
#include "evaluation/sandbox/programs.hpp"

namespace hone {

// The task's own program fails, or is refused: nobody's variant is to blame.
struct reference_error : std::runtime_error {
  reference_error(Outcome why, const std::string& message)
      : std::runtime_error(message), outcome(why) {}
  Outcome outcome;
};

// What an expectation comes from: the reference as it is, or run in float64 as well, where that can
// be. The first is half of the work or less, and enough for whoever agrees with it.
enum class exactness { own_types, float64 };

// One call of a reference; the task is at fault where it takes longer.
inline constexpr auto reference_call_limit = std::chrono::seconds(60);

// Tensors by number: inputs, then parameters.
const tensor_spec& tensor_of(const task& t, std::size_t tensor);
// Whether anything among these would be more exact in float64.
bool has_narrow(const std::vector<tensor_layout>& layouts);
// Whether a float64 run's outputs stand for those of the run in its own types.
bool stands_for(const std::vector<tensor_layout>& wide, const std::vector<tensor_layout>& own);
// Throws reference_error where an `expr` does not give one tensor of the shape that it was given.
void check_expression(const tensor_spec& spec, const std::vector<tensor_layout>& outputs,
                      const tensor_layout& raw);

// Knows what is right: runs a task's reference, in its own types and in float64, and its
// `expr`essions, in a process that shares no memory with any candidate's. Not for more than one
// thread.
class reference_oracle {
 public:
  // The programs that its session must have been opened with: the reference, then one for each
  // tensor with an `expr`, inputs before parameters.
  static std::vector<host_source> programs(const task& t);
  // Which of them belongs to each tensor; 0: none.
  static std::vector<std::size_t> program_numbers(const task& t);

  // `session` runs those programs. `t` must outlive the oracle.
  reference_oracle(const task& t, std::unique_ptr<program_session> session);

  const task& of() const { return *task_; }

  // Applies the tensor's `expr`, where it has one, and casts. `tensor` counts inputs, then
  // parameters. Throws reference_error.
  tensor_value realise(std::size_t tensor, const tensor_value& raw);

  // What a call must give. Throws reference_error.
  expected_outputs expect(const value_set& inputs, const value_set& parameters,
                          exactness how = exactness::float64);
  // Memory that the reference's outputs share with its arguments and each other, in the last
  // expect().
  const std::set<shared_memory_of_output>& aliases() const { return aliases_; }

 private:
  value_set call(std::size_t program, const value_set& inputs, const value_set& parameters);

  const task* task_;
  std::unique_ptr<program_session> session_;
  std::vector<std::size_t> program_of_;  // by tensor; 0: none
  std::set<shared_memory_of_output> aliases_;
  bool has_wide_ = true;
};

}  // namespace hone
