#include "evaluation/judge/timed_checks.hpp"

#include <utility>

#include "evaluation/judge/timing.hpp"

namespace hone {
namespace {

constexpr std::uint64_t others_one_in = 2;  // checks

}  // namespace

program_failure judge_by_degrees(
    verification_result& totals,
    const std::function<program_failure(exactness with, verification_result& totals)>& judge) {
  verification_result first;
  const program_failure disagrees = judge(exactness::own_types, first);
  if (disagrees.outcome != Outcome::OK) return judge(exactness::float64, totals);
  totals = first;
  return disagrees;
}

timed_checks::timed_checks(std::vector<distribution> listed, random_stream& random, look_at look)
    : random_(&random), look_(std::move(look)), others_(std::move(listed)) {
  std::erase(others_, distribution::declared);
}

// A program that knows timed calls by their addresses or their rhythm may be right for declared
// contents alone.
void timed_checks::check() {
  check_one(std::nullopt);
  if (others_.empty() || random_->below(others_one_in) != 0) return;
  std::swap(others_[next_], others_[next_ + random_->below(others_.size() - next_)]);
  check_one(others_[next_]);
  next_ = (next_ + 1) % others_.size();
}

void timed_checks::check_all() {
  check_one(std::nullopt);
  for (const distribution other : others_) check_one(other);
}

void timed_checks::check_one(std::optional<distribution> how) {
  while (true) {
    verification_result totals;
    const program_failure wrong = look_(how, totals);
    if (wrong.outcome == Outcome::OK) return;
    if (!chance_.take(wrong, totals))
      throw timing_failure{{wrong.outcome, wrong.kind, wrong.message + " (in a timed call)"}};
    how = how.value_or(distribution::declared);  // new contents: the last run's call may be the
                                                 // only one, and would be wrong again
  }
}

}  // namespace hone
