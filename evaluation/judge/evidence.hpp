#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

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
// reference takes decisions. `most_runs`: as many as there is memory for. `may_decide`: false if
// the reference is known to take no decisions. Then the first study has no run without noise.
reference_study study_of_errors(evidence wanted, bool has_wide, std::size_t most_runs,
                                bool may_decide);
reference_study study_of_decisions(evidence wanted, bool has_wide, std::size_t most_runs);
// Completes a study's plan for a task and the distribution of its inputs.
void complete(reference_study& study, const task& t, distribution how, std::uint64_t seed);

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
  // Adds the missing runs to the problem of a comparison, which they might have explained.
  void complete(agreement& compared) const;

 private:
  int kind_ = 0;
  std::string why_;
};

// What studies have shown of a reference in one case. Later studies need not find it out again.
class reference_facts {
 public:
  const possible_studies& possible() const { return possible_; }

  // Gathers evidence in one or two studies. `make` makes a study, and returns true if the reference
  // takes decisions. If it throws reference_error, the study is tried with fewer kinds of runs, and
  // `restart` prepares for that. `is_narrow`: float64 is wider than the reference's own types.
  // Returns true if the reference takes decisions. Throws reference_error.
  bool gather(evidence wanted, bool is_narrow, std::size_t most_runs,
              const std::function<bool(const reference_study&)>& make,
              const std::function<void()>& restart);

  // Returns the typical error of an output, as a share of a typical element, that runs with noise
  // have shown for other contents of this distribution; 0: none. With it, most calls of programs
  // that add up in another order need no runs with noise.
  double typical_error(distribution how, std::size_t output) const;
  // Learns the typical errors from a comparison with runs with noise. The smallest ones count.
  void learn(distribution how, const agreement& compared);

 private:
  possible_studies possible_;
  bool may_decide_ = true;
  std::map<std::pair<distribution, std::size_t>, double> typical_errors_;  // by output
};

// Judges the calls of one candidate by as little evidence as suffices, and remembers how much that
// is. Confined to one thread.
class evidence_plan {
 public:
  // Gathers evidence for new contents, which have the distribution `how`, by `gather`.
  void begin(distribution how, const std::function<void(evidence)>& gather);
  // Checks a call by `check`, and again with more evidence from `gather` while its values are
  // wrong. Adds the errors of the check that decides to `totals`.
  program_result<void> judge(worst_errors& totals, const std::function<void(evidence)>& gather,
                             const std::function<program_result<void>(worst_errors&)>& check);

 private:
  // How often calls have needed runs with noise.
  std::map<distribution, int> needed_noise_;
  distribution how_ = distribution::declared;
  evidence have_ = evidence::own_types;
};

}  // namespace hone
