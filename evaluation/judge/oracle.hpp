#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/program/source.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// The task's own program fails or is refused. No variant is to blame.
struct reference_error : std::runtime_error {
  reference_error(Outcome why, const std::string& message)
      : std::runtime_error(message), outcome(why) {}
  Outcome outcome;
};

// How expected outputs are computed: by the reference in its own types, or in float64 as well where
// the reference allows it. The first is at most half of the work.
enum class exactness { own_types, float64 };

// The limit for one call of a reference; beyond it the task is at fault.
inline constexpr auto reference_call_limit = std::chrono::seconds(60);

// Returns a tensor by its number: inputs first, then parameters.
const tensor_spec& tensor_of(const task& t, std::size_t tensor);
// Returns true if any of these would be more exact in float64.
bool has_narrow(const std::vector<tensor_layout>& layouts);
// Returns true if a float64 run's outputs correspond to those of the run in its own types.
bool stands_for(const std::vector<tensor_layout>& wide, const std::vector<tensor_layout>& own);
// Throws reference_error unless an `expr` returned one tensor with the shape of its argument.
void check_expression(const tensor_spec& spec, const std::vector<tensor_layout>& outputs,
                      const tensor_layout& raw);

// Computes expected outputs. It runs a task's reference, in its own types and in float64, and the
// `expr` programs of its tensors, in a process that shares no memory with any candidate's. Confined
// to one thread.
class reference_oracle {
 public:
  // Returns the programs that the oracle's session must have been opened with: the reference, then
  // one per tensor with an `expr`, inputs before parameters.
  static std::vector<program_source> programs(const task& t);
  // Returns the index of each tensor's `expr` in programs(), by tensor number; 0: it has none.
  static std::vector<std::size_t> program_numbers(const task& t);

  // `session` runs those programs. `t` must outlive the oracle.
  reference_oracle(const task& t, std::unique_ptr<program_session> session);

  const task& of() const { return *task_; }

  // Applies the `expr` of a tensor, if it has one, and casts to the tensor's type. Throws
  // reference_error.
  tensor_value realise(std::size_t tensor, const tensor_value& raw);

  // Computes the outputs of a call with these arguments. Throws reference_error.
  expected_outputs expect(const value_set& inputs, const value_set& parameters,
                          exactness how = exactness::float64);
  // Returns the memory that the reference's outputs shared with its arguments and with each other
  // in the last expect().
  const std::set<output_alias>& aliases() const { return aliases_; }

 private:
  value_set call(std::size_t program, const value_set& inputs, const value_set& parameters);

  const task* task_;
  std::unique_ptr<program_session> session_;
  std::vector<std::size_t> program_of_;  // by tensor; 0: none
  std::set<output_alias> aliases_;
  bool has_wide_ = true;  // the reference runs in float64, as far as is known
};

}  // namespace hone
