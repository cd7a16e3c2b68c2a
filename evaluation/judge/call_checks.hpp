#pragma once

#include <optional>
#include <set>
#include <string>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// The largest errors of some outputs, relative to what is allowed and as relative L2 error.
struct error_totals {
  double worst_element = 0;  // at most 1 is agreement
  double relative_l2 = 0;
  void include(const error_totals& other);
};

// A finished call of a candidate whose outputs are still in its memory, wherever that is.
class finished_call {
 public:
  virtual ~finished_call() = default;
  // Describes a write outside of the buffers that were handed out; nullopt if there was none.
  virtual std::optional<std::string> memory_damage() = 0;
  virtual bool inputs_hold() = 0;
  virtual bool parameters_hold() = 0;
  virtual std::set<output_alias> aliases() = 0;
  // Compares the outputs with the expected ones. A malformed output is a failure.
  virtual program_result<agreement> compare() = 0;
};

// Checks a finished call: memory, inputs and parameters, aliases, then values (evaluation.md
// section 2, point 5). `allowed_aliases` are the reference's. Adds the errors to `totals`.
program_result<void> check_call(finished_call& call, const std::set<output_alias>& allowed_aliases,
                                const task& t, error_totals& totals);

// Returns true if a reference with these aliases writes its outputs. Memory that they share with
// its arguments was written before.
bool writes_outputs(const std::set<output_alias>& aliases);

// An element may by bad luck be off by somewhat more than the rule allows, where large terms cancel
// and the reference's own error decides. So one barely wrong result per verification, or per timed
// case, does not count, and another call is checked in its place: a wrong program is wrong again.
class second_chance {
 public:
  // Returns true if this failure may be passed over. `totals`: the errors of that call or round.
  bool take(const program_failure& wrong, const error_totals& totals);

 private:
  bool taken_ = false;
};

}  // namespace hone
