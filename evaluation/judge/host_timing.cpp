#include "evaluation/judge/host_timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "evaluation/judge/evidence.hpp"
#include "evaluation/judge/host_trial.hpp"
#include "evaluation/judge/paired_timing.hpp"

namespace hone {
namespace {

constexpr std::size_t max_sets = 128;
// Processor time that a process may use between two runs, to receive a command and to free the last
// run's tensors: an allowance per run, and one per call of that run. (Typical times are 60 us and
// 1.5 us; under load, one run in a hundred takes 300 us.) Time beyond the allowance is work while
// the clock is stopped, and is charged. Time beyond `glitch` times the allowance is the run's
// excess. A process whose runs have an excess of more than a tenth of their time, beyond that of
// the reference, cheats (`outside_share`).
constexpr double outside_per_run_ns = 75e3;
constexpr double glitch = 2;
// At most this share of a run's time is free of charge. Where calls take a few microseconds, the
// whole work of a run would otherwise fit into the allowance.
constexpr double outside_most_share = 0.25;
constexpr double outside_share = 0.1;
constexpr double max_of_reference = 0.2;  // that is taken off
// Excess of all runs in total, below which its share means nothing.
constexpr double outside_least_ns = 10e6;

// The contents that both sides of a timed case share: parameters, and the numbers that inputs are
// assembled from. Both are renewed together.
class round_contents {
 public:
  explicit round_contents(timed_inputs& of) : of_(&of) {}

  // Returns the parameters that `drawn` describes. A new seed also renews the numbers that inputs
  // are assembled from, so that what a program has learnt about the old numbers cannot help its
  // next prepare().
  const value_set& parameters(const drawn_contents& drawn) {
    if (drawn != drawn_) {
      drawn_ = drawn;
      random_stream random(drawn.seed);
      of_->inputs.renew(random);
      seed_ = random.bits();
      of_->parameters.fill(parameters_, {seed_, 0, drawn.how});
    }
    return parameters_;
  }
  const value_set& parameters() const { return parameters_; }
  std::uint64_t parameters_seed() const { return seed_; }
  const timed_inputs& inputs() const { return *of_; }

 private:
  timed_inputs* of_;
  drawn_contents drawn_;
  std::uint64_t seed_ = 0;  // of the parameters
  value_set parameters_;
};

// One of the two programs, with its own input sets. Everything passed by reference must outlive it.
class host_side final : public timed_side {
 public:
  enum class role { candidate, reference };
  host_side(role plays, program_session& session, round_contents& contents,
            const timing_limits& limits, random_stream& random, time_budget& budget)
      : role_(plays),
        session_(&session),
        contents_(&contents),
        call_limit_(limits.call),
        outside_per_call_ns_(limits.outside_per_call_ns),
        random_(&random),
        budget_(&budget),
        held_(contents.inputs().sets) {
    const input_recipe& recipe = contents.inputs().recipe;
    session.arrange(0, recipe.input_layouts(), recipe.parameter_layouts(), held_.size());
  }

  // Runs prepare() before the inputs of later calls exist.
  void set_parameters(const drawn_contents& drawn) override {
    const value_set& parameters = contents_->parameters(drawn);
    session_->write_parameters(parameters, contents_->parameters_seed());
    charged(call_limit_, [&](time_point deadline) { return session_->prepare(deadline); });
  }
  void begin_round(const drawn_round& round) override {
    round_ = round;
    calls_of_round_ = 0;
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
    const double allowed = outside_per_run_ns + outside_per_call_ns_ * calls;
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

  const std::vector<std::size_t>& last_sets() const { return last_; }
  // Returns the inputs that a set held in the last run; valid until the next call of this function.
  const value_set& values(std::size_t set) {
    contents_->inputs().inputs.fill(values_, held_[set]);
    return values_;
  }
  distribution distribution_of(std::size_t set) const { return held_[set].how; }
  // Returns the mean over this side's runs of the excess's share of a run's time; 0 if the excess
  // is too short to mean anything. A mean of shares, and not a share of sums, because a machine
  // that takes the processor away for some milliseconds charges them to the process: a few runs
  // would then outweigh all others.
  double share_outside() const {
    return excess_ns_ > outside_least_ns ? excess_shares_ / static_cast<double>(runs_) : 0;
  }

 private:
  // Runs work of the program on the budget and returns its value. A reference's failures are the
  // task's fault.
  template <class Work>
  auto charged(std::chrono::milliseconds limit, Work&& work) -> decltype(work(time_point())) {
    auto done = role_ == role::candidate ? budget_->for_candidate(limit, work)
                                         : budget_->for_reference(limit, work);
    if (!done && role_ == role::candidate) throw timing_failure{done.error()};
    if (!done) throw reference_error(done.error().outcome, done.error().message);
    return done;
  }

  // Takes the next `calls` sets in turn and draws new contents for them.
  void take_sets(std::size_t calls) {
    last_.resize(calls);
    for (std::size_t& set : last_) {
      set = next_;
      next_ = (next_ + 1) % held_.size();
      held_[set] = perturbed_seed_ != 0
                       ? drawn_contents{perturbed_seed_, random_->bits() | 1U}
                       : drawn_contents{random_->bits(), 0, round_.of_call(calls_of_round_++)};
    }
  }

  // Every call's inputs are written when its turn has come, so that no call can do the work of
  // another.
  batch_clock run_last_sets() {
    const auto write = [this](std::size_t call) {
      const std::size_t set = last_[call];
      contents_->inputs().inputs.fill(session_->input_places(set), held_[set]);
    };
    return *charged(call_limit_ * static_cast<std::int64_t>(last_.size()),
                    [&](time_point deadline) { return session_->run(last_, deadline, write); });
  }

  role role_;
  program_session* session_;
  round_contents* contents_;
  std::chrono::milliseconds call_limit_;
  double outside_per_call_ns_;
  random_stream* random_;
  time_budget* budget_;
  std::vector<drawn_contents> held_;  // by set
  drawn_round round_;
  std::size_t calls_of_round_ = 0;
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
  host_checks(const timed_pair& pair, const round_contents& contents, host_side& candidate,
              random_stream& random)
      : pair_(&pair), contents_(&contents), candidate_(&candidate), random_(&random) {}

  // Checks a call of the last run. The candidate's process is stopped meanwhile.
  timed_checks::checked_call check(std::optional<distribution> wanted_contents) {
    const std::size_t call = draw_call(candidate_->last_sets().size(), wanted_contents, *random_,
                                       [&](std::size_t i) { return distribution_of(i); });
    const std::size_t set = candidate_->last_sets()[call];
    const value_set& inputs = candidate_->values(set);
    const distribution how = candidate_->distribution_of(set);
    expected_outputs expected;
    worst_errors totals;
    const auto gather = [&](evidence wanted) {
      expected = pair_->oracle.expect(inputs, contents_->parameters(), wanted, how);
    };
    evidence_.begin(how, gather);
    auto checked = evidence_.judge(totals, gather, [&](worst_errors& errors) {
      pair_->candidate.require_row_major(pair_->oracle.row_major_outputs());
      host_call finished(pair_->candidate, call, set, inputs, contents_->parameters(), expected,
                         pair_->oracle);
      return check_call(finished, pair_->oracle.aliases(), pair_->oracle.of(), errors);
    });
    if (checked) {
      const bool writes = writes_outputs(pair_->oracle.aliases());
      min_bytes_ = std::min(min_bytes_, writes ? pair_->candidate.output_bytes(call) : 0);
    }
    return {how, std::move(checked)};
  }

  // Returns the smallest number of bytes that a checked call wrote. The warm-up checks at least one
  // call.
  std::size_t min_bytes() const { return min_bytes_; }

 private:
  distribution distribution_of(std::size_t call) const {
    return candidate_->distribution_of(candidate_->last_sets()[call]);
  }

  const timed_pair* pair_;
  const round_contents* contents_;
  host_side* candidate_;
  random_stream* random_;
  evidence_plan evidence_;
  std::size_t min_bytes_ = std::numeric_limits<std::size_t>::max();
};

// The reference's share says how much of the candidate's is the machine's doing.
std::optional<program_failure> find_work_outside(double share, double reference_share) {
  if (share <= std::min(reference_share, max_of_reference) + outside_share) return std::nullopt;
  return program_failure{Outcome::CHEATING, "late_work",
                         "works while the clock is stopped: " + print_number(100 * share, 3) +
                             " % of a run's time lies before it"};
}

}  // namespace

std::size_t affordable_sets(std::size_t bytes_per_call, std::size_t memory_budget) {
  return std::clamp<std::size_t>(memory_budget / std::max<std::size_t>(bytes_per_call, 1), 2,
                                 max_sets);
}

case_timing time_case(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
                      const timing_limits& limits, time_budget& budget, random_stream& random) {
  round_contents contents(inputs);
  using role = host_side::role;
  host_side candidate(role::candidate, pair.candidate, contents, limits, random, budget);
  host_side reference(role::reference, pair.reference, contents, limits, random, budget);
  host_checks calls(pair, contents, candidate, random);
  timed_checks checks(inputs.usable, random,
                      [&](const auto& wanted) { return calls.check(wanted); });
  case_timing timing = time_pair(candidate, reference, rules, random, &checks);
  if (timing.failure && timing.failure->outcome != Outcome::UNSTABLE) return timing;
  // If the timing has not settled, cheating may be the cause, and is then the failure to report.
  timing.floor_us = limits.floor_us_per_byte * static_cast<double>(calls.min_bytes());
  auto cheating = find_impossible_time(timing.clocked_candidate_us, timing.floor_us);
  if (!cheating) cheating = find_work_outside(candidate.share_outside(), reference.share_outside());
  if (cheating) timing.failure = cheating;
  return timing;
}

}  // namespace hone
