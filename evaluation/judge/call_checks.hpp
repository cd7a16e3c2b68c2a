#pragma once

#include <optional>
#include <set>
#include <string>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// The largest errors over the outputs of one call or several.
struct worst_errors {
  double worst_element = 0;  // error of an element over its allowed error; at most 1 is agreement
  double relative_l2 = 0;
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
};

// Checks a finished call: memory, inputs and parameters, aliases, then values (evaluation.md
// section 2, point 5). `allowed_aliases` are the reference's, `how` is the distribution of the
// inputs. Adds the errors to `totals`.
program_result<void> check_call(finished_call& call, const std::set<output_alias>& allowed_aliases,
                                const task& t, distribution how, worst_errors& totals);

// Returns true if a reference whose outputs have these aliases writes all of them during the call.
// An output that lies in older memory, such as an argument's, was written before the call.
bool writes_outputs(const std::set<output_alias>& aliases);

// Returns true if a call was wrong, and its worst element off by at most eight times what is
// allowed.
bool is_barely_wrong(const program_failure& wrong, const worst_errors& errors);

// Returns true if a wrong call is accepted because its inputs had a single outlier and it was
// barely wrong: the outlier makes one row of a matrix large, say, and its rounding errors are
// compared with the size of all rows. A program that has not read the outlier is wrong by thousands
// of times what is allowed. `how`: the distribution of the inputs.
bool is_excused(distribution how, const program_failure& wrong, const worst_errors& errors);

// Permits one barely wrong result per verification or per timed case, in whose place another call
// is checked. Where large terms cancel, the reference's own error decides, and an element of a
// correct program may by bad luck be off by somewhat more than the rule allows. A wrong program is
// wrong in the second call as well.
class second_chance {
 public:
  // Returns true if this failure does not count, which happens at most once. `totals`: the errors
  // of the failed call or round.
  bool take(const program_failure& wrong, const worst_errors& totals);

 private:
  bool taken_ = false;
};

}  // namespace hone
