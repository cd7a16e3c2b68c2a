#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "evaluation/devices/program_session.hpp"
#include "evaluation/judge/oracle.hpp"

namespace hone {

struct verification_limits {
  std::chrono::milliseconds call{10000};   // one call
  std::chrono::milliseconds whole{60000};  // all of them
};

struct verification_result {
  program_failure failure;  // outcome OK: none
  std::uint32_t rounds = 0;
  double worst_element = 0;
  double relative_l2 = 0;
};

// One candidate, one case at a time, with everything that judging its calls takes: contents, what
// is right, and the comparison. Kinds of device differ in where all that lies. Throws
// reference_error.
class trial {
 public:
  virtual ~trial() = default;
  virtual const task& of() const = 0;
  // Room for two sets of inputs.
  virtual void arrange(const task_case& at) = 0;
  // Contents for the parameters and, the same, for both sets; what is right is computed.
  virtual void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) = 0;
  // A few elements of one set's inputs are others from here on, and so is what is right.
  virtual void twist(std::size_t set, std::uint64_t twist) = 0;
  // One set's inputs are new, as declared but for one outlier in each; mirrored, it has the other
  // sign. What is right follows.
  virtual void hide_outlier(std::size_t set, std::uint64_t inputs_seed, bool mirrored) = 0;
  // One call, and whether anything is wrong with it.
  virtual program_failure call(std::size_t set, std::chrono::steady_clock::time_point until,
                               verification_result& totals) = 0;
};

// Whether a candidate is right: evaluation.md section 2. Every case that runs on this kind of
// device, two rounds as declared and one of each other distribution that the task lists, at least
// five in all; each with inputs drawn from `seed`, which must be younger than the candidate's
// process. Throws reference_error.
verification_result verify_program(trial& candidate, std::string_view device_kind,
                                   std::uint64_t seed, const verification_limits& limits);
// The same for a session in the host's memory.
verification_result verify_program(program_session& candidate, reference_oracle& oracle,
                                   std::string_view device_kind, std::uint64_t seed,
                                   const verification_limits& limits);

// The parts of judging a finished call that do not depend on where its memory lies.
// Memory that an output shares and may not, since the reference's does not.
std::optional<program_failure> find_forbidden_alias(
    const std::set<shared_memory_of_output>& shared,
    const std::set<shared_memory_of_output>& allowed, const task& t);
// What the comparison of a call's outputs means; `totals` keeps the worst errors.
program_failure judge_outputs(const agreement& agreed, verification_result& totals);
// An element may be off by somewhat more than the rule allows by bad luck: where large terms
// cancel, what the reference's own error happens to be decides. So one barely wrong result in a
// verification, or in the timing of a case, does not count, and another is looked at in its place:
// what is wrong is wrong again.
class second_chance {
 public:
  // Whether this one may be passed over; `totals`: of that call or round alone.
  bool take(const program_failure& wrong, const verification_result& totals);

 private:
  bool taken_ = false;
};
// Whether a reference with these aliases writes its outputs: memory that they share with its
// arguments was there before.
bool writes_outputs(const std::set<shared_memory_of_output>& aliases);

// One finished call held against what is expected of it: memory, inputs, aliases, then values.
// Shared with timing, which checks some of its calls in the same way.
program_failure check_call(program_session& candidate, std::size_t call, std::size_t set,
                           const value_set& inputs, const value_set& parameters,
                           const expected_outputs& expected,
                           const std::set<shared_memory_of_output>& allowed_aliases, const task& t,
                           verification_result& totals);

}  // namespace hone
