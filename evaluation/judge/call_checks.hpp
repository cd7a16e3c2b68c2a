#pragma once

#include <optional>
#include <set>
#include <string>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// The largest errors over the outputs of one call or several, as multiples of the allowed error; at
// most 1 is agreement.
struct worst_errors {
  double worst_element = 0;
  double rms = 0;
  bool is_malformed = false;      // of the last call: see agreement
  bool may_be_decisions = false;  // the reference may have taken other decisions in the last call
  // Raises both errors to those of `other` where these are larger.
  void include(const worst_errors& other);
};

// A finished call of a candidate. Its outputs still lie in the candidate's memory, on the host or
// on a GPU.
class finished_call {
 public:
  virtual ~finished_call() = default;
  // Describes a write outside of the buffers that were handed out; nullopt if there was none.
  virtual std::optional<std::string> memory_damage() = 0;
  // Return true if the call has left its inputs or parameters unchanged.
  virtual bool inputs_hold() = 0;
  virtual bool parameters_hold() = 0;
  // Returns the memory that outputs share with other tensors.
  virtual std::set<output_alias> aliases() = 0;
  // Compares the outputs with the expected ones. Returns a failure if an output is malformed.
  virtual program_result<agreement> compare() = 0;
  // Returns true unless the reference is known to take no decisions in this call.
  virtual bool reference_takes_decisions() = 0;
};

// Checks a finished call: memory, inputs and parameters, aliases, then values (evaluation.md
// section 2, point 5). `allowed_aliases` are the reference's. Adds the errors to `totals`.
program_result<void> check_call(finished_call& call, const std::set<output_alias>& allowed_aliases,
                                const task& t, worst_errors& totals);

// Returns true if a reference whose outputs have these aliases writes all of them during the call.
// An output that lies in older memory, such as an argument's, was written before the call.
bool writes_outputs(const std::set<output_alias>& aliases);

}  // namespace hone
