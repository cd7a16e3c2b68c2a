#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "evaluation/judge/call_checks.hpp"
#include "evaluation/program/session.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// How many runs of the reference the judge has compared a call with. Limits need few runs for most
// programs: with less evidence they are narrower, so that a program which agrees needs no more.
// Only `thorough` evidence refuses an output that rounding might explain.
enum class evidence { own_types, noise, full, thorough };

// The runs of a study and the places of their outputs. The first run is the reference in its own
// types.
struct reference_study {
  study_plan plan;
  std::optional<std::size_t> wide;     // in float64
  std::optional<std::size_t> settled;  // in float64, with the first run's decisions
  std::size_t first_noisy = 1;
  std::size_t noisy = 0;
  std::size_t first_alternative = 1;
  std::size_t alternatives = 0;
};

// Returns the study that gathers evidence of continuous errors, and the one that follows where the
// reference takes decisions. `most_runs`: as many as there is memory for.
reference_study study_of_errors(evidence wanted, bool has_wide, std::size_t most_runs);
reference_study study_of_decisions(evidence wanted, bool has_wide, std::size_t most_runs);
// The kinds of runs that a reference can make, found by trying: both, without float64, without
// noise, or neither. Some references work in their own types only.
class possible_studies {
 public:
  bool wide() const { return kind_ == 0 || kind_ == 2; }
  bool noise() const { return kind_ < 2; }
  bool any() const { return kind_ < 3; }
  // Tries the next kind, because the last one has failed with this message.
  void give_up(const std::string& why) {
    ++kind_;
    why_ = why;
  }
  // Says which runs are not possible: "runs with noise are not possible (MESSAGE)". Empty if all
  // are.
  std::string missing() const;

 private:
  int kind_ = 0;
  std::string why_;
};

// Completes a study's plan for a task and the distribution of its inputs.
void complete(reference_study& study, const task& t, distribution how, std::uint64_t seed);

// Judges the calls of one candidate by as little evidence as suffices, and remembers how much that
// is. Confined to one thread.
class evidence_plan {
 public:
  // Gathers evidence for new contents by `gather`.
  void begin(const std::function<void(evidence)>& gather);
  // Checks a call by `check`, and again with more evidence from `gather` while its values are
  // wrong. Adds the errors of the check that decides to `totals`.
  program_result<void> judge(worst_errors& totals, const std::function<void(evidence)>& gather,
                             const std::function<program_result<void>(worst_errors&)>& check);

 private:
  evidence have_ = evidence::own_types;
  evidence usual_ = evidence::own_types;  // that the last call needed, up to `noise`
};

}  // namespace hone
