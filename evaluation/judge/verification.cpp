#include "evaluation/judge/verification.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/variation.hpp"

namespace hone {
namespace {

constexpr std::size_t min_rounds_of_a_case = 5;
constexpr std::size_t max_rounds_of_a_way = 4;  // of a distribution that changes one input
// Rounds whose inputs are tried at two addresses, and once more with a few elements changed.
constexpr std::size_t thorough_rounds = 2;

struct planned_round {
  distribution how;
  std::size_t turn = 0;  // of the inputs that `how` changes one at a time
};

std::vector<planned_round> plan_rounds(const task& t, const std::vector<distribution>& usable,
                                       random_stream& random) {
  std::vector<planned_round> rounds(2, {distribution::declared});
  for (const distribution how : usable) {
    if (how == distribution::declared) continue;
    const std::size_t turns = turns_of(t, how);
    // Each round keeps the values of a few slices of a random dimension.
    const bool is_repeated = how == distribution::sparse || how == distribution::weights;
    const std::size_t wanted = std::max<std::size_t>(turns, is_repeated ? 2 : 1);
    const std::size_t first = random.below(turns);
    for (std::size_t i = 0; i < std::min(wanted, max_rounds_of_a_way); ++i)
      rounds.push_back({how, (first + i) % turns});
  }
  while (rounds.size() < min_rounds_of_a_case) rounds.push_back({distribution::declared});
  return rounds;
}

class verification {
 public:
  verification(trial& candidate, std::uint64_t seed, const verification_limits& limits,
               time_budget& budget)
      : candidate_(&candidate), limits_(limits), budget_(&budget), random_(seed) {}

  // Verifies one case and adds its rounds and errors to `result`.
  program_result<void> verify_case(const task_case& at, verification_result& result) {
    candidate_->arrange(at);
    sets_ = {0, 1};
    tuning_ = limits_.tuning;
    std::size_t round = 0;
    for (const planned_round& planned :
         plan_rounds(candidate_->of(), candidate_->usable_distributions(), random_)) {
      auto verified = verify_round(round, planned, result.errors);
      if (!verified) return failed(with_place(verified.error(), at, planned.how));
      ++round;
      ++result.rounds;
    }
    return {};
  }

 private:
  program_result<void> verify_round(std::size_t round, const planned_round& planned,
                                    worst_errors& totals) {
    const auto [how, turn] = planned;
    const std::size_t turns = turns_of(candidate_->of(), how);
    const std::uint64_t contents = seed_of_turn(random_.bits(), turn, turns);
    // Two rounds that follow each other change constants in both ways (variation.cpp).
    const std::uint64_t parameters = 2 * (random_.bits() / 2) + round % 2;
    candidate_->draw(how, contents, parameters);
    // The same inputs at two addresses show results that depend on an address or on a race. The
    // order of the sets is random, but the second round begins with the set that ended the first,
    // so that at least one call finds new contents at the address of the call before it.
    if (round == 1 || random_.below(2) == 1) std::swap(sets_[0], sets_[1]);
    const bool is_thorough = round < thorough_rounds;
    for (const std::size_t set : std::span(sets_).first(is_thorough ? sets_.size() : 1)) {
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
      const std::uint64_t hiding = seed_of_turn(random_.bits(), turn, turns);
      for (const distribution single : {distribution::one_high, distribution::one_low}) {
        candidate_->redraw(sets_[1], single, hiding);
        if (auto called = call(sets_[1], totals); !called) return called;
      }
    }
    return {};
  }

  program_result<void> call(std::size_t set, worst_errors& totals) {
    const auto limit =
        limits_.call + std::exchange(limits_.loading, {}) + std::exchange(tuning_, {});
    return candidate_->call(set, limit, *budget_, totals);
  }

  static program_failure with_place(program_failure wrong, const task_case& at, distribution how) {
    const std::string sizes = print_sizes(at);
    wrong.message += " (" + (sizes.empty() ? "" : "case " + sizes + ", ") +
                     std::string(name_of(how)) + " contents)";
    return wrong;
  }

  trial* candidate_;
  verification_limits limits_;
  time_budget* budget_;
  random_stream random_;
  std::chrono::milliseconds tuning_{0};  // for the next call in addition
  std::array<std::size_t, 2> sets_ = {0, 1};
};

}  // namespace

verification_result verify_program(trial& candidate, std::string_view device_kind,
                                   std::uint64_t seed, const verification_limits& limits,
                                   time_budget& budget) {
  verification_result result;
  verification one(candidate, seed, limits, budget);
  for (const task_case& at : candidate.of().cases) {
    if (!runs_on(at, device_kind)) continue;
    if (auto verified = one.verify_case(at, result); !verified) {
      result.failure = verified.error();
      return result;
    }
  }
  if (result.rounds == 0)
    result.failure = program_failure{Outcome::INFRASTRUCTURE, "",
                                     "the task has no case for this kind of device"};
  return result;
}

}  // namespace hone
