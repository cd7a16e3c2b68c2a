#include "evaluation/judge/evidence.hpp"

#include <algorithm>
#include <utility>

#include "evaluation/judge/oracle.hpp"

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

reference_study study_of_errors(evidence wanted, bool has_wide, std::size_t most_runs,
                                bool may_decide) {
  reference_study study;
  study.noisy = std::min(amount_of(wanted).noisy, most_runs);
  if (may_decide) study.plan.runs.push_back({0, 0, false, decisions::record});
  study.first_noisy = study.plan.runs.size();
  for (std::size_t i = 0; i < study.noisy; ++i)
    study.plan.runs.push_back({1, i, false, may_decide ? decisions::replay : decisions::ignore});
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

void possible_studies::complete(agreement& compared) const {
  if (const std::string which = missing(); compared.problem && !which.empty())
    *compared.problem += "; " + which;
}

bool reference_facts::gather(evidence wanted, bool is_narrow, std::size_t most_runs,
                             const std::function<bool(const reference_study&)>& make,
                             const std::function<void()>& restart) {
  for (;;) {
    try {
      const bool has_wide = possible_.wide() && is_narrow;
      const std::size_t most = possible_.noise() ? most_runs : 0;
      const reference_study errors = study_of_errors(wanted, has_wide, most, may_decide_);
      may_decide_ = !errors.plan.runs.empty() && make(errors);
      if (may_decide_ && wanted >= evidence::full) make(study_of_decisions(wanted, has_wide, most));
      return may_decide_;
    } catch (const reference_error& e) {
      // The reference works in its own types only, or the runs do not fit into memory.
      if (!possible_.any() || e.outcome == Outcome::INFRASTRUCTURE || e.outcome == Outcome::TIMEOUT)
        throw;
      possible_.give_up(e.what());
      restart();
    }
  }
}

double reference_facts::typical_error(distribution how, std::size_t output) const {
  const auto found = typical_errors_.find({how, output});
  return found != typical_errors_.end() ? found->second : 0;
}

void reference_facts::learn(distribution how, const agreement& compared) {
  for (std::size_t i = 0; i < compared.typical_errors.size(); ++i) {
    const double found = compared.typical_errors[i];
    if (found == 0) continue;
    double& known = typical_errors_.try_emplace({how, i}, found).first->second;
    known = std::min(known, found);
  }
}

void complete(reference_study& study, const task& t, distribution how, std::uint64_t seed) {
  study.plan.seed = seed;
  study.plan.tf32 = t.relaxed;
  study.plan.is_sparse = has_many_zeros(how);
  study.plan.has_small_inputs = has_small_values(how);
}

void evidence_plan::begin(distribution how, const std::function<void(evidence)>& gather) {
  // The first call that needs noise teaches the typical error, which may suffice for the next one.
  how_ = how;
  have_ = needed_noise_[how_] < 2 ? evidence::own_types : evidence::noise;
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
  if (checked && have_ >= evidence::noise) ++needed_noise_[how_];
  totals.include(errors);
  return checked;
}

}  // namespace hone
