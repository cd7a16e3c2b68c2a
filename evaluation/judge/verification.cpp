#include "evaluation/judge/verification.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/judge/random_values.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t least_rounds_of_a_case = 5;
// Rounds whose inputs are tried at two addresses even beside a slow reference, and once more with a
// few elements changed.
constexpr std::size_t thorough_rounds = 2;

std::vector<distribution> plan_rounds(const task& t) {
  std::vector<distribution> rounds = {distribution::declared, distribution::declared};
  for (const distribution d : t.distributions) {
    if (d != distribution::declared) rounds.push_back(d);
  }
  while (rounds.size() < least_rounds_of_a_case) rounds.push_back(distribution::declared);
  return rounds;
}

class verification {
 public:
  verification(trial& candidate, std::uint64_t seed, const verification_limits& limits)
      : candidate_(&candidate), limits_(limits), random_(seed) {}

  // Verifies one case and adds its rounds and errors to `result`.
  program_result<void> verify_case(const task_case& at, verification_result& result) {
    candidate_->arrange(at);
    sets_ = {0, 1};
    tuning_ = limits_.tuning;
    std::size_t round = 0;
    std::vector<distribution> rounds = plan_rounds(candidate_->of());
    if (candidate_->bears_large_inputs()) rounds.push_back(distribution::large);
    for (const distribution how : rounds) {
      worst_errors totals;
      auto verified = verify_round(round, how, totals);
      if (!verified && chance_.take(verified.error(), totals)) {
        totals = {};
        verified = verify_round(round, how, totals);
      }
      result.errors.include(totals);
      if (!verified) return failed(with_place(verified.error(), at, how));
      ++round;
      ++result.rounds;
    }
    return {};
  }

 private:
  program_result<void> verify_round(std::size_t round, distribution how, worst_errors& totals) {
    const std::uint64_t contents = random_.bits();
    candidate_->draw(how, contents, random_.bits());
    // The same inputs at two addresses show results that depend on an address or on a race. The
    // order of the sets is random, but the second round begins with the set that ended the first,
    // so that at least one call finds new contents at the address of the call before it.
    if (round == 1 || random_.below(2) == 1) std::swap(sets_[0], sets_[1]);
    const bool is_thorough = round < thorough_rounds;
    const bool is_repeated = is_thorough || !candidate_->is_reference_slow();
    for (const std::size_t set : std::span(sets_).first(is_repeated ? sets_.size() : 1)) {
      if (auto called = call(set, totals); !called) return called;
    }
    // The new contents differ from the set's last contents in a few elements only, so a cache keyed
    // by a sample of the contents is stale.
    if (is_thorough) {
      candidate_->perturb(sets_[1], random_.bits() | 1U);
      if (auto called = call(sets_[1], totals); !called) return called;
    }
    // One outlier per five thousand elements shows in any sample of some size, but a single outlier
    // does not. Both signs are tried, because a negative outlier hardly changes a sum of
    // exponentials.
    if (how == distribution::outliers) {
      const std::uint64_t hiding = random_.bits();
      for (const distribution single : {distribution::one_high, distribution::one_low}) {
        candidate_->redraw(sets_[1], single, hiding);
        worst_errors errors;
        auto called = call(sets_[1], errors);
        if (!called && is_excused(single, called.error(), errors)) continue;
        totals.include(errors);
        if (!called) return called;
      }
    }
    return {};
  }

  program_result<void> call(std::size_t set, worst_errors& totals) {
    if (spent_ > limits_.whole)
      return failed(Outcome::TIMEOUT, "verification took longer than " +
                                          std::to_string(limits_.whole.count() / 1000) + " s");
    const auto limit =
        limits_.call + std::exchange(limits_.loading, {}) + std::exchange(tuning_, {});
    const auto begin = clock::now();
    auto called = candidate_->call(
        set, begin + std::min<clock::duration>(limits_.whole - spent_, limit), totals);
    spent_ += clock::now() - begin;
    return called;
  }

  static program_failure with_place(program_failure wrong, const task_case& at, distribution how) {
    const std::string sizes = print_sizes(at);
    wrong.message += " (" + (sizes.empty() ? "" : "case " + sizes + ", ") +
                     std::string(name_of(how)) + " inputs)";
    return wrong;
  }

  trial* candidate_;
  verification_limits limits_;
  random_stream random_;
  second_chance chance_;
  std::chrono::milliseconds tuning_{0};  // for the next call in addition
  clock::duration spent_{0};  // in trial::call(); drawing and expected outputs do not count
  std::array<std::size_t, 2> sets_ = {0, 1};
};

}  // namespace

program_result<void> exactness_plan::judge(
    worst_errors& totals, const std::function<void(exactness)>& expect,
    const std::function<program_result<void>(worst_errors&)>& check) {
  worst_errors errors;
  auto checked = check(errors);
  if (!checked && take_float64()) {
    expect(exactness::float64);
    errors = {};
    checked = check(errors);
  }
  totals.include(errors);
  return checked;
}

verification_result verify_program(trial& candidate, std::string_view device_kind,
                                   std::uint64_t seed, const verification_limits& limits) {
  verification_result result;
  verification one(candidate, seed, limits);
  for (const task_case& at : candidate.of().cases) {
    if (!runs_on(at, device_kind)) continue;
    if (auto verified = one.verify_case(at, result); !verified) {
      result.failure = verified.error();
      return result;
    }
  }
  return result;
}

}  // namespace hone
