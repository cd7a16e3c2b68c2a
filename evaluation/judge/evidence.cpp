#include "evaluation/judge/evidence.hpp"

#include <algorithm>
#include <utility>

namespace hone {
namespace {

using decisions = studied_run::decisions;

// Noise of runs that look for other decisions: a correct program's errors, several times over.
constexpr double amplitude_of_alternatives = 4;

struct amount {
  std::size_t noisy;
  std::size_t alternatives;
};
constexpr amount amounts[] = {{0, 0}, {1, 0}, {3, 4}, {8, 12}};

amount amount_of(evidence wanted) { return amounts[static_cast<std::size_t>(wanted)]; }

evidence next(evidence have) { return static_cast<evidence>(static_cast<int>(have) + 1); }

// No rounding explains an error so much larger than full evidence allows. Errors may be
// larger where decisions differ.
bool is_hopeless(evidence have, const worst_errors& errors) {
  constexpr double beyond_rounding = 64;
  return have == evidence::full && errors.worst_element > beyond_rounding &&
         !errors.may_be_decisions;
}

}  // namespace

reference_study study_of_errors(evidence wanted, bool has_wide, std::size_t most_runs) {
  reference_study study;
  study.noisy = std::min(amount_of(wanted).noisy, most_runs);
  study.plan.runs.push_back({0, 0, false, decisions::record});
  for (std::size_t i = 0; i < study.noisy; ++i)
    study.plan.runs.push_back({1, i, false, decisions::replay});
  if (has_wide && wanted >= evidence::full) {
    study.wide = study.plan.runs.size();
    study.plan.runs.push_back({0, 0, true, decisions::ignore});
  }
  return study;
}

reference_study study_of_decisions(evidence wanted, bool has_wide, std::size_t most_runs) {
  reference_study study;
  study.alternatives = std::min(amount_of(wanted).alternatives, most_runs);
  study.plan.runs.push_back({0, 0, false, decisions::record});
  // Pairs of runs with opposite signs take both decisions at every tie.
  for (std::size_t i = 0; i < study.alternatives; ++i) {
    const double sign = i % 2 == 0 ? 1 : -1;
    study.plan.runs.push_back({sign * amplitude_of_alternatives, i / 2, false, decisions::ignore});
  }
  if (has_wide) {
    study.settled = study.plan.runs.size();
    study.plan.runs.push_back({0, 0, true, decisions::replay});
  }
  return study;
}

std::string possible_studies::missing() const {
  if (kind_ == 0) return {};
  const std::string which = !wide() && !noise() ? "in float64 and with noise"
                            : wide()            ? "with noise"
                                                : "in float64";
  return "runs " + which + " are not possible (" + why_ + ")";
}

void complete(reference_study& study, const task& t, distribution how, std::uint64_t seed) {
  study.plan.seed = seed;
  study.plan.tf32 = t.relaxed;
  study.plan.is_sparse = has_many_zeros(how);
  study.plan.has_small_inputs = has_small_values(how);
}

void evidence_plan::begin(const std::function<void(evidence)>& gather) {
  have_ = usual_;
  gather(have_);
}

program_result<void> evidence_plan::judge(
    worst_errors& totals, const std::function<void(evidence)>& gather,
    const std::function<program_result<void>(worst_errors&)>& check) {
  worst_errors errors;
  auto checked = check(errors);
  const auto may_be_rounding = [&] {
    return !checked && checked.error().outcome == Outcome::WRONG_RESULT && !errors.is_malformed &&
           have_ < evidence::thorough && !is_hopeless(have_, errors);
  };
  while (may_be_rounding()) {
    have_ = next(have_);
    gather(have_);
    errors = {};
    checked = check(errors);
  }
  if (checked) usual_ = std::min(have_, evidence::noise);
  totals.include(errors);
  return checked;
}

}  // namespace hone
