#include "evaluation/judge/timed_checks.hpp"

#include <algorithm>
#include <utility>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/variation.hpp"

namespace hone {
namespace {

// Distributions of a round with other contents: a run of several calls can show more than one.
constexpr std::size_t max_of_a_round = 3;

}  // namespace

timed_checks::timed_checks(std::vector<distribution> usable, random_stream& random,
                           check_function check)
    : random_(&random), check_(std::move(check)), others_(std::move(usable)) {
  std::erase(others_, distribution::declared);
  has_weights_ = std::erase(others_, distribution::weights) > 0;
  // A program that has learnt how dense the outliers of a check are takes a sample that finds them.
  if (std::find(others_.begin(), others_.end(), distribution::outliers) != others_.end())
    others_.insert(others_.end(), {distribution::one_high, distribution::one_low});
}

distribution timed_checks::next_other() {
  std::swap(others_[next_], others_[next_ + random_->below(others_.size() - next_)]);
  const distribution drawn = others_[next_];
  next_ = (next_ + 1) % others_.size();
  return drawn;
}

drawn_round timed_checks::draw(std::uint64_t seed, const timing_rules& rules) {
  const bool has_others = !others_.empty() || has_weights_;
  if (!has_others || random_->below(rules.others_one_in) != 0) return {seed};
  // A round of `weights` is drawn as often as one with each group of others.
  const std::size_t groups = (others_.size() + max_of_a_round - 1) / max_of_a_round;
  if (has_weights_ && random_->below(1 + groups) == 0) return {seed, {distribution::weights}};
  return draw_others(seed, max_of_a_round);
}

drawn_round timed_checks::draw_others(std::uint64_t seed, std::size_t most) {
  if (most >= others_.size()) next_ = 0;  // each of them once
  drawn_round round{seed, std::vector<distribution>(std::min(most, others_.size()))};
  for (distribution& how : round.of_calls) how = next_other();
  return round;
}

std::vector<drawn_round> timed_checks::draw_last(std::uint64_t seed, const timing_rules& rules) {
  std::vector<drawn_round> rounds;
  if (!others_.empty()) rounds.push_back(draw_others(seed, rules.last_checks));
  if (has_weights_) rounds.push_back({~seed, {distribution::weights}});
  return rounds;
}

void timed_checks::check(std::optional<distribution> wanted) {
  const auto [how, result] = check_(wanted);
  if (result) return;
  const program_failure& wrong = result.error();
  throw timing_failure{
      {wrong.outcome, wrong.kind,
       wrong.message + " (in a timed call, " + std::string(name_of(how)) + " contents)"}};
}

std::size_t draw_call(std::size_t calls, std::optional<distribution> wanted, random_stream& random,
                      const std::function<distribution(std::size_t)>& distribution_of) {
  std::vector<std::size_t> found;
  for (std::size_t call = 0; call < calls; ++call) {
    if (wanted == distribution_of(call)) found.push_back(call);
  }
  return found.empty() ? random.below(calls) : found[random.below(found.size())];
}

std::vector<distribution> usable_distributions(
    const task& t, random_stream& random,
    const std::function<bool(distribution, std::uint64_t)>& gives_numbers) {
  std::vector<distribution> usable = {distribution::declared};
  const bool has_numbers = gives_numbers(distribution::declared, random.bits());
  const auto gives_always = [&](distribution how) {
    const std::size_t turns = turns_of(t, how);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (!gives_numbers(how, seed_of_turn(random.bits(), turn, turns))) return false;
    }
    return true;
  };
  for (const distribution how : t.distributions) {
    if (how == distribution::declared || !changes_any(t, how)) continue;
    try {
      if (!has_numbers || gives_always(how)) usable.push_back(how);
    } catch (const reference_error& e) {
      if (e.outcome == Outcome::INFRASTRUCTURE) throw;
    }
  }
  return usable;
}

}  // namespace hone
