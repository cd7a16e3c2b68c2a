#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/judge/evidence.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/program/source.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Thrown if the task's own program fails or is refused. No variant is to blame.
struct reference_error : std::runtime_error {
  reference_error(Outcome why, const std::string& message)
      : std::runtime_error(message), outcome(why) {}
  Outcome outcome;
};

// Time limit of one call of a reference. The task is at fault if a call exceeds it.
inline constexpr auto reference_call_limit = std::chrono::seconds(60);

// Returns a tensor by its number: inputs first, then parameters.
const tensor_spec& tensor_of(const task& t, std::size_t tensor);
// Returns true if any layout has a floating-point type narrower than float64.
bool has_narrow(const std::vector<tensor_layout>& layouts);
// Returns true if the outputs of a float64 run correspond to those of the run in the reference's
// own types: same count and shapes, and floating-point types at the same places.
bool stands_for(const std::vector<tensor_layout>& wide, const std::vector<tensor_layout>& own);
// Throws reference_error unless an `expr` returned one tensor with the shape of its argument.
void check_expression(const tensor_spec& spec, const std::vector<tensor_layout>& outputs,
                      const tensor_layout& raw);

// Computes expected outputs. It runs a task's reference, in its own types and in float64, and the
// `expr` programs of the task's tensors, in a process that shares no memory with any candidate's
// process. Confined to one thread.
class reference_oracle {
 public:
  // Returns the programs that the oracle's session must have been opened with: the reference, then
  // one per tensor with an `expr`, inputs before parameters.
  static std::vector<program_source> programs(const task& t);
  // Returns the index in programs() of each tensor's `expr`, by tensor number; 0 if it has none.
  static std::vector<std::size_t> program_numbers(const task& t);

  // `session` must have been opened with programs(t). `t` must outlive the oracle.
  reference_oracle(const task& t, std::unique_ptr<program_session> session);

  const task& of() const { return *task_; }

  // Applies the `expr` of a tensor, if it has one, and casts to the tensor's type. Throws
  // reference_error.
  tensor_value realize(std::size_t tensor, const tensor_value& raw);

  // Computes the outputs of a call with these arguments, in as many runs as `wanted` says. `how`:
  // the distribution of the inputs. Throws reference_error.
  expected_outputs expect(const value_set& inputs, const value_set& parameters, evidence wanted,
                          distribution how = distribution::declared);
  // Returns the memory that the reference's outputs shared with its arguments and with each other
  // in the last expect().
  const std::set<output_alias>& aliases() const { return aliases_; }
  // Compares a call's outputs with those that the last expect() returned.
  agreement compare(const value_set& actual, const expected_outputs& expected);
  // Returns what studies have shown of the reference in the case of the last expect().
  const reference_facts& facts() const { return *facts_; }
  // Returns a bit for each output of the last expect() that is row-major.
  std::uint64_t row_major_outputs() const { return row_major_outputs_; }

 private:
  void arrange(std::size_t program, const value_set& inputs, const value_set& parameters);
  value_set call(std::size_t program, const value_set& inputs, const value_set& parameters);
  // Makes the runs of a study on the current arguments and adds their outputs to `to`. Returns true
  // if the reference takes decisions.
  bool study(reference_study study, distribution how, expected_outputs& to);

  const task* task_;
  std::unique_ptr<program_session> session_;
  std::vector<std::size_t> program_of_;  // by tensor; 0: none
  std::set<output_alias> aliases_;
  std::uint64_t row_major_outputs_ = 0;
  std::map<std::string, reference_facts> facts_of_case_;  // by the layouts of the inputs
  reference_facts* facts_ = nullptr;
};

}  // namespace hone
