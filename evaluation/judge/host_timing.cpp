#include "evaluation/judge/host_timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "evaluation/judge/host_trial.hpp"
#include "evaluation/judge/paired_timing.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t max_sets = 128;
// Processor time that a process may use between two runs, to receive a command and to free the last
// run's tensors: an allowance per run, and one per call of that run. (Typical times are 60 us and
// 1.5 us; under load, one run in a hundred takes 300 us.) Time beyond the allowance is work while
// the clock stands still, and is charged. Time beyond `glitch` times the allowance is the run's
// excess. A process whose runs have an excess of more than a tenth of their time, beyond that of
// the reference, cheats (`outside_share`).
constexpr double outside_per_run_ns = 75e3;
constexpr double outside_per_call_ns = 2e3;
constexpr double glitch = 2;
// At most this share of a run's time is free of charge. Where calls take a few microseconds, the
// whole work of a run would otherwise fit into the allowance.
constexpr double outside_most_share = 0.25;
constexpr double outside_share = 0.1;
constexpr double most_of_reference = 0.2;  // that is taken off
// Excess of all runs in total, below which its share means nothing.
constexpr double outside_least_ns = 10e6;

// The contents that both sides of a timed case share: parameters, and the numbers that inputs are
// assembled from. Both are renewed together.
class round_contents {
 public:
  explicit round_contents(timed_inputs& of) : of_(&of) {}

  // Returns the parameters that belong to `seed`. A new seed also renews the numbers that inputs
  // are assembled from, so that what a program has learnt about the old numbers cannot help its
  // next prepare().
  const value_set& parameters(std::uint64_t seed) {
    if (seed != seed_) {
      seed_ = seed;
      random_stream random(seed);
      of_->inputs.renew(random);
      of_->parameters.fill(parameters_, random.bits());
    }
    return parameters_;
  }
  const value_set& parameters() const { return parameters_; }
  const timed_inputs& inputs() const { return *of_; }

 private:
  timed_inputs* of_;
  std::uint64_t seed_ = 0;
  value_set parameters_;
};

// One of the two programs, with its own input sets. Everything passed by reference must outlive it.
class host_side final : public timed_side {
 public:
  // `budget` is null for the reference, whose failures are the task's fault.
  host_side(program_session& session, round_contents& contents,
            std::chrono::milliseconds call_limit, random_stream& random, const time_budget* budget)
      : session_(&session),
        contents_(&contents),
        call_limit_(call_limit),
        random_(&random),
        budget_(budget),
        held_(contents.inputs().sets) {
    const input_recipe& recipe = contents.inputs().recipe;
    session.arrange(0, recipe.input_layouts(), recipe.parameter_layouts(), held_.size());
  }

  // Runs prepare() before the inputs of later calls exist.
  void set_parameters(std::uint64_t seed) override {
    session_->write_parameters(contents_->parameters(seed));
    if (const auto prepared = session_->prepare(deadline(call_limit_)); !prepared)
      fail(prepared.error());
  }
  void begin_warm_up(std::uint64_t seed) override { perturbed_seed_ = seed; }
  void end_warm_up() override { perturbed_seed_ = 0; }

  // Makes at most one call per input set. Every set gets new contents before it is used.
  run_time run(double target_ns) override {
    const double estimate = call_ns_ > 0 ? target_ns / call_ns_ : 1;
    take_sets(static_cast<std::size_t>(
        std::clamp(std::ceil(estimate), 1.0, static_cast<double>(held_.size()))));
    const batch_clock time = run_last_sets();
    const auto calls = static_cast<double>(last_.size());
    const double allowed = outside_per_run_ns + outside_per_call_ns * calls;
    const double outside =
        std::max(0.0, time.outside_ns - std::min(allowed, outside_most_share * time.device_ns));
    const double excess = std::max(0.0, time.outside_ns - glitch * allowed);
    excess_ns_ += excess;
    if (excess > 0) excess_shares_ += excess / (time.device_ns + time.outside_ns);
    ++runs_;
    call_ns_ = std::max(1.0, time.device_ns / calls);
    return {(time.device_ns + outside) / calls, time.device_ns / calls, time.device_ns + outside,
            time.wall_ns, last_.size()};
  }

  // Makes an uncounted run that looks like the last one, in which one call gets `values` as inputs.
  // Returns that call's index.
  std::size_t run_with(const value_set& values) {
    take_sets(last_.size());
    const std::size_t call = random_->below(last_.size());
    give(values, last_[call]);
    run_last_sets();
    return call;
  }
  // Makes one uncounted call with `values` as inputs.
  void call_with(const value_set& values) {
    last_ = {next_};
    give(values, next_);
    run_last_sets();
  }

  const std::vector<std::size_t>& last_sets() const { return last_; }
  // Returns the inputs that a set held in the last run; valid until the next call of this function.
  const value_set& values(std::size_t set) {
    contents_->inputs().inputs.fill(values_, held_[set].seed, held_[set].perturbation);
    return values_;
  }
  // Returns the mean over this side's runs of the excess's share of a run's time; 0 if the excess
  // is too short to mean anything. A mean of shares, and not a share of sums, because a machine
  // that takes the processor away for some milliseconds charges them to the process: a few runs
  // would then outweigh all others.
  double share_outside() const {
    return excess_ns_ > outside_least_ns ? excess_shares_ / static_cast<double>(runs_) : 0;
  }

 private:
  struct held_contents {
    std::uint64_t seed = 0;
    std::uint64_t perturbation = 0;
  };

  [[noreturn]] void fail(const program_failure& why) const {
    if (budget_ == nullptr) throw reference_error(why.outcome, why.message);
    throw timing_failure{why};
  }

  // Returns the deadline of work that may take `limit`, or less if the budget is nearly used up.
  // Throws timing_failure if it is used up.
  time_point deadline(std::chrono::milliseconds limit) const {
    if (budget_ == nullptr) return clock::now() + limit;
    budget_->check();
    return clock::now() +
           std::min(limit, std::chrono::milliseconds(
                               1 + static_cast<std::int64_t>(budget_->left_ns() / 1e6)));
  }

  void give(const value_set& values, std::size_t set) {
    const auto places = session_->input_places(set);
    for (std::size_t i = 0; i < places.size(); ++i)
      std::copy(values[i].bytes.begin(), values[i].bytes.end(), places[i].begin());
  }

  // Takes the next `calls` sets in turn and gives them new contents.
  void take_sets(std::size_t calls) {
    last_.resize(calls);
    for (std::size_t& set : last_) {
      set = next_;
      next_ = (next_ + 1) % held_.size();
      held_[set] = perturbed_seed_ != 0 ? held_contents{perturbed_seed_, random_->bits() | 1U}
                                        : held_contents{random_->bits(), 0};
      contents_->inputs().inputs.fill(session_->input_places(set), held_[set].seed,
                                      held_[set].perturbation);
    }
  }

  batch_clock run_last_sets() {
    const auto ran =
        session_->run(last_, deadline(call_limit_ * static_cast<std::int64_t>(last_.size())));
    if (!ran) fail(ran.error());
    return *ran;
  }

  program_session* session_;
  round_contents* contents_;
  std::chrono::milliseconds call_limit_;
  random_stream* random_;
  const time_budget* budget_;
  std::vector<held_contents> held_;  // by set
  // Seed of the contents that every call of the warm-up gets a perturbation of, so that a cache
  // keyed by a sample of the contents gives wrong results. 0 outside of the warm-up, where contents
  // have nothing in common.
  std::uint64_t perturbed_seed_ = 0;
  value_set values_;
  std::vector<std::size_t> last_;
  std::size_t next_ = 0;
  double call_ns_ = 0;
  double excess_ns_ = 0;      // of all runs
  double excess_shares_ = 0;  // sum over the runs
  std::size_t runs_ = 0;
};

// Checks calls of the candidate's last run.
class host_checks {
 public:
  host_checks(const timed_pair& pair, timed_inputs& inputs, const round_contents& contents,
              host_side& candidate, host_side& reference, random_stream& random,
              time_budget& budget)
      : pair_(&pair),
        inputs_(&inputs),
        contents_(&contents),
        candidate_(&candidate),
        reference_(&reference),
        random_(&random),
        budget_(&budget) {}

  // Checks a random call, as timed_checks::check_function demands. The candidate's process is
  // stopped meanwhile. The reference makes a call with the same contents, because the speed of a
  // function may depend on what its process has computed before: that of LibTorch's lgamma does, by
  // 2.5 times, on processors with AVX-512.
  program_result<void> check(std::optional<distribution> how, worst_errors& totals) {
    const value_set drawn = how ? inputs_->inputs.draw(*how, random_->bits()) : value_set{};
    if (how) budget_->for_reference([&] { reference_->call_with(drawn); });
    const std::size_t call =
        how ? candidate_->run_with(drawn) : random_->below(candidate_->last_sets().size());
    const std::size_t set = candidate_->last_sets()[call];
    const value_set& inputs = how ? drawn : candidate_->values(set);
    auto checked = budget_->for_judge([&] {
      return judge_by_degrees(totals, [&](exactness with, worst_errors& errors) {
        const auto expected = pair_->oracle.expect(inputs, contents_->parameters(), with);
        pair_->candidate.require_row_major(pair_->oracle.row_major_outputs());
        host_call finished(pair_->candidate, call, set, inputs, contents_->parameters(), expected,
                           pair_->oracle.of());
        return check_call(finished, pair_->oracle.aliases(), pair_->oracle.of(),
                          how.value_or(distribution::declared), errors);
      });
    });
    if (checked) {
      const bool writes = writes_outputs(pair_->oracle.aliases());
      least_bytes_ = std::min(least_bytes_, writes ? pair_->candidate.output_bytes(call) : 0);
    }
    return checked;
  }

  // Returns the smallest number of bytes that a checked call wrote. The warm-up checks at least one
  // call.
  std::size_t least_bytes() const { return least_bytes_; }

 private:
  const timed_pair* pair_;
  timed_inputs* inputs_;
  const round_contents* contents_;
  host_side* candidate_;
  host_side* reference_;
  random_stream* random_;
  time_budget* budget_;
  std::size_t least_bytes_ = std::numeric_limits<std::size_t>::max();
};

// The reference's share says how much of the candidate's is the machine's doing.
std::optional<program_failure> find_work_outside(double share, double reference_share) {
  if (share <= std::min(reference_share, most_of_reference) + outside_share) return std::nullopt;
  return program_failure{Outcome::CHEATING, "late_work",
                         "works while the clock stands still: " + print_number(100 * share, 3) +
                             " % of a run's time lies before it"};
}

}  // namespace

std::size_t affordable_sets(std::size_t bytes_per_call, std::size_t memory_budget) {
  return std::clamp<std::size_t>(memory_budget / std::max<std::size_t>(bytes_per_call, 1), 2,
                                 max_sets);
}

case_timing time_case(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
                      const timing_limits& limits, random_stream& random) {
  time_budget budget(rules.time_budget_ns);
  round_contents contents(inputs);
  host_side candidate(pair.candidate, contents, limits.call, random, &budget);
  host_side reference(pair.reference, contents, limits.call, random, nullptr);
  host_checks calls(pair, inputs, contents, candidate, reference, random, budget);
  timed_checks checks(pair.oracle.of().distributions, random,
                      [&](std::optional<distribution> how, worst_errors& totals) {
                        return calls.check(how, totals);
                      });
  case_timing timing = time_pair(candidate, reference, rules, random, budget, &checks);
  if (timing.failure && timing.failure->outcome != Outcome::UNSTABLE) return timing;
  // If the timing has not settled, cheating may be the cause, and is then the failure to report.
  timing.floor_us = limits.floor_us_per_byte * static_cast<double>(calls.least_bytes());
  auto cheating = find_impossible_time(timing.clocked_candidate_us, timing.floor_us);
  if (!cheating) cheating = find_work_outside(candidate.share_outside(), reference.share_outside());
  if (cheating) timing.failure = cheating;
  return timing;
}

}  // namespace hone
