#include "evaluation/judge/timed_checks.hpp"

#include <algorithm>
#include <utility>

#include "evaluation/judge/case_timing.hpp"

namespace hone {
namespace {

// One check in this number is followed by a check of another distribution.
constexpr std::uint64_t others_one_in = 2;

}  // namespace

program_result<void> judge_by_degrees(
    worst_errors& totals,
    const std::function<program_result<void>(exactness with, worst_errors& totals)>& judge) {
  worst_errors first;
  if (!judge(exactness::own_types, first)) return judge(exactness::float64, totals);
  totals = first;
  return {};
}

timed_checks::timed_checks(std::vector<distribution> listed, random_stream& random,
                           check_function check)
    : random_(&random), check_(std::move(check)), others_(std::move(listed)) {
  std::erase(others_, distribution::declared);
  // A program that has learnt how dense the outliers of a check are takes a sample that finds them.
  if (std::find(others_.begin(), others_.end(), distribution::outliers) != others_.end())
    others_.insert(others_.end(), {distribution::one_high, distribution::one_low});
}

// Other distributions are checked because a program that recognises timed calls, by their addresses
// or their rhythm, may be right for declared inputs alone.
void timed_checks::check() {
  check_one(std::nullopt);
  if (others_.empty() || random_->below(others_one_in) != 0) return;
  check_another();
}

void timed_checks::check_at_end(std::size_t most) {
  check_one(std::nullopt);
  next_ = 0;
  for (std::size_t i = 0; i < std::min(most, others_.size()); ++i) check_another();
}

// Checks one of the other distributions that had no turn yet.
void timed_checks::check_another() {
  std::swap(others_[next_], others_[next_ + random_->below(others_.size() - next_)]);
  check_one(others_[next_]);
  next_ = (next_ + 1) % others_.size();
}

void timed_checks::check_one(std::optional<distribution> how) {
  while (true) {
    worst_errors totals;
    const auto checked = check_(how, totals);
    if (checked) return;
    const program_failure& wrong = checked.error();
    if (how && is_excused(*how, wrong, totals)) return;
    if (!chance_.take(wrong, totals))
      throw timing_failure{{wrong.outcome, wrong.kind, wrong.message + " (in a timed call)"}};
    // The second check needs new inputs: the last run may have made only one call, which would be
    // wrong again.
    how = how.value_or(distribution::declared);
  }
}

}  // namespace hone
