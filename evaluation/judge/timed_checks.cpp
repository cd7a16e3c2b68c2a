#include "evaluation/judge/timed_checks.hpp"

#include <algorithm>
#include <utility>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/variation.hpp"

namespace hone {
namespace {

// Distributions of a round with other contents: a run of several calls can show more than one.
constexpr std::size_t most_of_a_round = 3;

}  // namespace

timed_checks::timed_checks(std::vector<distribution> usable, random_stream& random,
                           check_function check)
    : random_(&random), check_(std::move(check)), others_(std::move(usable)) {
  std::erase(others_, distribution::declared);
  // A program that has learnt how dense the outliers of a check are takes a sample that finds them.
  if (std::find(others_.begin(), others_.end(), distribution::outliers) != others_.end())
    others_.insert(others_.end(), {distribution::one_high, distribution::one_low});
}

std::vector<distribution> timed_checks::draw(std::uint64_t others_one_in) {
  if (others_.empty() || random_->below(others_one_in) != 0) return {distribution::declared};
  std::vector<distribution> drawn;
  while (drawn.size() < std::min(most_of_a_round, others_.size())) {
    std::swap(others_[next_], others_[next_ + random_->below(others_.size() - next_)]);
    const bool is_alone = others_[next_] == distribution::weights;
    if (is_alone && !drawn.empty()) break;  // its turn is the next round's
    drawn.push_back(others_[next_]);
    next_ = (next_ + 1) % others_.size();
    if (is_alone) break;
  }
  return drawn;
}

void timed_checks::check() {
  const auto [how, result] = check_();
  if (result) return;
  const program_failure& wrong = result.error();
  throw timing_failure{
      {wrong.outcome, wrong.kind,
       wrong.message + " (in a timed call, " + std::string(name_of(how)) + " contents)"}};
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
