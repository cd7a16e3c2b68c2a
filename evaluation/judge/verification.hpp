#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone {

struct verification_limits {
  std::chrono::milliseconds call{10000};  // for one call
  std::chrono::milliseconds loading{0};   // for the first call in addition
  // For the first call of each case in addition, in which a program may try algorithms.
  std::chrono::milliseconds tuning{0};
  std::chrono::milliseconds whole{60000};  // for all calls of a verification
};

struct verification_result {
  std::optional<program_failure> failure;
  std::uint32_t rounds = 0;
  worst_errors errors;
};

// Decides how exactly a verification computes expected outputs. It begins with the reference's own
// types. If they take little time, float64 follows, until that has taken a tenth of a second.
// Where float64 is left out, it is computed for results that disagree with the reference. Confined
// to one thread.
class exactness_plan {
 public:
  // Computes expected outputs by `expect` and measures its time.
  template <class Expect>
  void expect(Expect&& expect) {
    const bool is_cheap = own_ < longest_own && spent_ < most_float64;
    with_ = is_cheap ? exactness::float64 : exactness::own_types;
    const auto begin = std::chrono::steady_clock::now();
    expect(with_);
    const auto taken = std::chrono::steady_clock::now() - begin;
    if (is_cheap) {
      spent_ += taken;
    } else {
      own_ = taken;
    }
  }
  // Checks a result by `check` and adds its errors to `totals`. If the result disagrees with
  // expected outputs that were not computed in float64, `expect` computes them so and the result is
  // checked again.
  program_result<void> judge(worst_errors& totals, const std::function<void(exactness)>& expect,
                             const std::function<program_result<void>(worst_errors&)>& check);
  // Returns true if a disagreement with the last expected outputs may be due to their exactness.
  // They are taken to be in float64 from now on.
  bool take_float64() { return std::exchange(with_, exactness::float64) == exactness::own_types; }
  // True if the reference does not take little time in its own types.
  bool is_reference_slow() const { return own_ >= longest_own; }

 private:
  // A convolution takes a GPU up to thirty times as long in float64.
  static constexpr std::chrono::milliseconds longest_own{8};
  static constexpr std::chrono::milliseconds most_float64{100};
  std::chrono::steady_clock::duration own_ = longest_own;  // the last time, in own types
  std::chrono::steady_clock::duration spent_{0};           // in float64
  exactness with_ = exactness::float64;
};

// The trial of a candidate, one case at a time: draws inputs, computes the expected outputs, makes
// calls and compares their outputs. Kinds of device differ in where the tensors lie. Functions
// throw reference_error if the task is at fault. Confined to one thread.
class trial {
 public:
  virtual ~trial() = default;
  virtual const task& of() const = 0;
  // Begins a case and makes room for two input sets, 0 and 1.
  virtual void arrange(const task_case& at) = 0;
  // Returns true if programs for the case must be right for `large` inputs.
  virtual bool bears_large_inputs() { return false; }
  // Returns true if the reference's last calls took so long that only some of the inputs are tried
  // at two addresses.
  virtual bool is_reference_slow() = 0;
  // Draws parameters, and the same inputs for both sets.
  virtual void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) = 0;
  // Perturbs the inputs of one set.
  virtual void perturb(std::size_t set, std::uint64_t perturbation) = 0;
  // Draws the inputs of one set anew, from another distribution.
  virtual void redraw(std::size_t set, distribution how, std::uint64_t inputs_seed) = 0;
  // Makes one call on an input set, checks it and adds its errors to `totals`.
  virtual program_result<void> call(std::size_t set, time_point deadline, worst_errors& totals) = 0;
};

// Verifies a candidate (evaluation.md section 2): every case that runs on this kind of device, two
// rounds with `declared` inputs and one with each other distribution that the task lists, at least
// five rounds in all, and one with `large` inputs where the case bears them. A round's inputs are
// tried at two addresses; beside a slow reference, those of the third round and later at one of the
// two. Inputs are drawn from `seed`, which must have been drawn after the candidate's session was
// opened. Throws reference_error.
verification_result verify_program(trial& candidate, std::string_view device_kind,
                                   std::uint64_t seed, const verification_limits& limits);

}  // namespace hone
