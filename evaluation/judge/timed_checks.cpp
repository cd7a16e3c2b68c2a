#include "evaluation/judge/timed_checks.hpp"

#include <algorithm>
#include <utility>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/variation.hpp"

namespace hone {
namespace {

// One round in this number has another distribution than `declared`.
constexpr std::uint64_t others_one_in = 4;

}  // namespace

timed_checks::timed_checks(std::vector<distribution> usable, random_stream& random,
                           check_function check)
    : random_(&random), check_(std::move(check)), others_(std::move(usable)) {
  std::erase(others_, distribution::declared);
  // A program that has learnt how dense the outliers of a check are takes a sample that finds them.
  if (std::find(others_.begin(), others_.end(), distribution::outliers) != others_.end())
    others_.insert(others_.end(), {distribution::one_high, distribution::one_low});
}

distribution timed_checks::draw() {
  drawn_ = distribution::declared;
  if (others_.empty() || random_->below(others_one_in) != 0) return drawn_;
  std::swap(others_[next_], others_[next_ + random_->below(others_.size() - next_)]);
  drawn_ = others_[next_];
  next_ = (next_ + 1) % others_.size();
  return drawn_;
}

void timed_checks::check() {
  worst_errors totals;
  if (const auto checked = check_(totals); !checked) {
    const program_failure& wrong = checked.error();
    throw timing_failure{
        {wrong.outcome, wrong.kind,
         wrong.message + " (in a timed call, " + std::string(name_of(drawn_)) + " contents)"}};
  }
}

std::vector<distribution> usable_distributions(
    const task& t, const std::function<bool(distribution)>& gives_numbers) {
  std::vector<distribution> usable = {distribution::declared};
  const bool has_numbers = gives_numbers(distribution::declared);
  for (const distribution how : t.distributions) {
    if (how == distribution::declared || !changes_any(t, how)) continue;
    try {
      if (!has_numbers || gives_numbers(how)) usable.push_back(how);
    } catch (const reference_error& e) {
      if (e.outcome == Outcome::INFRASTRUCTURE) throw;
    }
  }
  return usable;
}

}  // namespace hone
