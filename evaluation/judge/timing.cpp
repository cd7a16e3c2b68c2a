#include "evaluation/judge/timing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "evaluation/judge/patience.hpp"
#include "evaluation/judge/timed_checks.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t max_sets = 128;
constexpr std::size_t max_runs_a_batch = 64;
// A batch is at least so many runs where calls are short enough, and counts as the fastest: what
// others do on the machine only ever makes a run slower, most runs on a shared one, and a batch has
// one that was left alone (doc/decisions/003).
constexpr double runs_a_batch = 5;
// A run this much faster than every run that has been checked is checked as well: nobody gains by
// being wrong now and then.
constexpr double suspiciously_fast = 0.8;
// How often a round is checked: one in two among those that every measurement has, one in eight
// beyond.
constexpr std::uint64_t check_one_in = 2;
constexpr std::uint64_t check_one_in_late = 8;
// What a process may use between two runs: to receive a command and free the last run's tensors,
// for a run and for each call of it (60 us and 1.5 us; under load one in a hundred takes 300 us).
// What goes beyond that is work while the clock stands still, and is charged. Twice as much is more
// than a glitch; a process that spends a tenth of its time so cheats.
constexpr double outside_a_run_ns = 75e3;
constexpr double outside_a_call_ns = 2e3;
constexpr double glitch = 2;
// And no more of it is free than this share of the run: where calls take a few microseconds, all of
// a run's work would fit.
constexpr double outside_most_share = 0.25;
constexpr double outside_share = 0.1;
constexpr double outside_least_ns = 10e6;

std::string text(double x) { return print_number(x, 3); }

// Calls between one hand-over to the process and the next.
struct run_time {
  double device_ns = 0;   // what it is charged
  double clocked_ns = 0;  // without what it used before
  double wall_ns = 0;
  std::size_t calls = 0;
  double call_ns() const { return device_ns / static_cast<double>(calls); }
};

// One side's share of a round: several runs.
struct batch_time {
  double device_ns = 0;
  double wall_ns = 0;
  std::size_t calls = 0;
  double call_ns = std::numeric_limits<double>::infinity();  // what a call is charged: in the
                                                             // fastest of the runs
  double least_ns =
      std::numeric_limits<double>::infinity();  // what a call took on the clock alone, in whichever
                                                // run that was least
  double device_us() const { return call_ns / 1e3; }
  double wall_us() const { return wall_ns / 1e3 / static_cast<double>(calls); }
};

// One of the two programs, with its own input sets.
class side {
 public:
  // What fails in the reference is the task's fault, and thrown as reference_error.
  // A candidate, which has `left`, fails by itself.
  side(program_session& session, const timed_inputs& inputs, random_stream& random,
       const patience* left)
      : session_(&session), from_(&inputs), random_(&random), left_(left), held_(inputs.sets) {
    session.arrange(0, inputs.recipe.input_layouts(), inputs.recipe.parameter_layouts(),
                    inputs.sets);
  }

  // prepare() runs at once: it must not find the inputs of the calls to come.
  void take_parameters(const value_set& parameters, std::chrono::milliseconds call_limit) {
    session_->write_parameters(parameters);
    if (const auto failed = session_->prepare(until(call_limit))) fail(*failed);
  }

  // Calls for `lead_in_ns` that do not count, which bring caches back from what ran in between,
  // then calls until `target_ns` of device time have passed, in runs over as many sets as that
  // needs. `check`, where there is one, is called after one run of the batch where `is_drawn`,
  // drawn among as many as the last batch had (a program that knew which one could be right there
  // alone), and after every suspiciously fast one. A batch that turns out shorter is checked at its
  // end, one that turns out longer goes on drawing.
  batch_time batch(double lead_in_ns, double target_ns, std::chrono::milliseconds call_limit,
                   const std::function<void()>& check = nullptr, bool is_drawn = true) {
    if (lead_in_ns > 0) run(lead_in_ns, call_limit);
    batch_time total;
    const std::size_t drawn = random_->below(runs_);
    bool checked = false;
    std::size_t runs = 0;
    while (runs < max_runs_a_batch && (runs == 0 || total.device_ns < target_ns)) {
      const run_time time =
          run(std::min(target_ns - total.device_ns, target_ns / runs_a_batch), call_limit);
      total.call_ns = std::min(total.call_ns, time.call_ns());
      total.least_ns = std::min(total.least_ns, time.clocked_ns / static_cast<double>(time.calls));
      total.device_ns += time.device_ns;
      total.wall_ns += time.wall_ns;
      total.calls += time.calls;
      const bool last = ++runs == max_runs_a_batch || total.device_ns >= target_ns;
      if (check == nullptr) continue;
      const bool is_due =
          is_drawn && (checked ? runs > runs_ && random_->below(runs_) == 0 : runs > drawn || last);
      const bool is_suspicious = time.call_ns() < suspiciously_fast * checked_call_ns_;
      if (!is_due && !is_suspicious) continue;
      check();
      checked = checked || is_due;
      checked_call_ns_ = std::min(checked_call_ns_, time.call_ns());
      if (lead_in_ns > 0 && !last) run(lead_in_ns, call_limit);
    }
    runs_ = runs;
    return total;
  }

  // A run like the last one, which does not count, but for one call, which finds these contents.
  // The call.
  std::size_t run_otherwise(const value_set& values, std::chrono::milliseconds call_limit) {
    take_sets(last_.size());
    const std::size_t call = random_->below(last_.size());
    const auto places = session_->input_places(last_[call]);
    for (std::size_t i = 0; i < places.size(); ++i)
      std::copy(values[i].bytes.begin(), values[i].bytes.end(), places[i].begin());
    const auto ran =
        session_->run(last_, until(call_limit * static_cast<std::int64_t>(last_.size())));
    if (const auto* failed = std::get_if<program_failure>(&ran)) fail(*failed);
    return call;
  }

  const std::vector<std::size_t>& last_sets() const { return last_; }
  // What the set held in the last run; until the next.
  const value_set& values(std::size_t set) {
    from_->inputs.fill(contents_, held_[set].seed, held_[set].twist);
    return contents_;
  }
  // From here on all calls get nearly the same contents, to lead those into error that keep results
  // under a sample of them; without a seed, contents that have nothing in common.
  void twist_contents_of(std::uint64_t seed) { twisted_ = seed; }
  // The share of its time that this side has used between its runs; 0 where that is too little to
  // mean anything.
  double share_outside() const {
    return outside_ns_ > outside_least_ns ? outside_ns_ / clocked_ns_ : 0;
  }

 private:
  [[noreturn]] void fail(const program_failure& why) const {
    if (left_ == nullptr) throw reference_error(why.outcome, why.message);
    throw timing_failure{why};
  }

  // When something that may take so long must be done. Throws timing_failure where there is no
  // patience left for it.
  clock::time_point until(std::chrono::milliseconds limit) const {
    if (left_ == nullptr) return clock::now() + limit;
    left_->check();
    return clock::now() +
           std::min(limit, std::chrono::milliseconds(
                               1 + static_cast<std::int64_t>(left_->left_ns() / 1e6)));
  }

  // The next sets in turn, with new contents.
  void take_sets(std::size_t calls) {
    last_.resize(calls);
    for (std::size_t& set : last_) {
      set = next_;
      next_ = (next_ + 1) % held_.size();
      held_[set] =
          twisted_ != 0 ? contents{twisted_, random_->bits() | 1U} : contents{random_->bits(), 0};
      from_->inputs.fill(session_->input_places(set), held_[set].seed, held_[set].twist);
    }
  }

  // About `target_ns` of calls, at most one a set; every set gets new contents before it is used.
  run_time run(double target_ns, std::chrono::milliseconds call_limit) {
    const double estimate = call_ns_ > 0 ? target_ns / call_ns_ : 1;
    const auto calls = static_cast<std::size_t>(
        std::clamp(std::ceil(estimate), 1.0, static_cast<double>(held_.size())));
    take_sets(calls);
    const auto ran = session_->run(last_, until(call_limit * static_cast<std::int64_t>(calls)));
    if (const auto* failed = std::get_if<program_failure>(&ran)) fail(*failed);
    const auto& time = std::get<batch_clock>(ran);
    const double allowed = outside_a_run_ns + outside_a_call_ns * static_cast<double>(calls);
    const double outside =
        std::max(0.0, time.outside_ns - std::min(allowed, outside_most_share * time.device_ns));
    outside_ns_ += std::max(0.0, time.outside_ns - glitch * allowed);
    clocked_ns_ += time.device_ns + outside;
    call_ns_ = std::max(1.0, time.device_ns / static_cast<double>(calls));
    return {time.device_ns + outside, time.device_ns, time.wall_ns, calls};
  }

  program_session* session_;
  const timed_inputs* from_;
  random_stream* random_;
  const patience* left_;  // none: the reference
  struct contents {
    std::uint64_t seed = 0;
    std::uint64_t twist = 0;
  };
  std::vector<contents> held_;  // by set
  std::uint64_t twisted_ = 0;
  value_set contents_;
  std::vector<std::size_t> last_;
  std::size_t next_ = 0;
  double call_ns_ = 0;
  double checked_call_ns_ =
      std::numeric_limits<double>::infinity();  // of the fastest run that has been checked
  std::size_t runs_ = 1;                        // of the last batch
  double clocked_ns_ = 0;
  double outside_ns_ = 0;
};

class protocol {
 public:
  protocol(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
           const timing_limits& limits, random_stream& random)
      : pair_(&pair),
        inputs_(&inputs),
        rules_(rules),
        limits_(limits),
        random_(&random),
        left_(rules.patience_ns),
        candidate_(pair.candidate, inputs, random, &left_),
        reference_(pair.reference, inputs, random, nullptr),
        checks_(pair.oracle.of().distributions, random,
                [this](auto how, auto& totals) { return look_at_candidate(how, totals); }) {}

  case_timing run() {
    case_timing result;
    try {
      warm_up();
      rounds(result);
    } catch (const timing_failure& e) {
      result.failure = e.why;
    }
    return result;
  }

 private:
  void new_parameters() {
    inputs_->parameters.fill(parameters_, random_->bits());
    candidate_.take_parameters(parameters_, limits_.call);
    left_.for_reference([this] { reference_.take_parameters(parameters_, limits_.call); });
  }

  // By time, the same for both sides; the first call of each may also load code, so it does not
  // count. No call gains from what it could keep of another, so here contents may be alike.
  void warm_up() {
    new_parameters();
    const std::uint64_t contents = random_->bits() | 1U;
    const auto warm = [&](side& one, const std::function<void()>& check) {
      one.twist_contents_of(contents);
      one.batch(0, 0, limits_.call);
      one.batch(0, rules_.warm_up_ns, limits_.call, check);
      one.twist_contents_of(0);
    };
    left_.for_reference([&] { warm(reference_, nullptr); });
    warm(candidate_, [this] { checks_.check(); });
  }

  batch_time time_reference() {
    return left_.for_reference(
        [this] { return reference_.batch(rules_.lead_in_ns, rules_.batch_ns, limits_.call); });
  }

  void rounds(case_timing& result) {
    double clocked = 0;
    std::vector<double> reference_us;
    std::vector<double> candidate_us;
    double fastest_us = std::numeric_limits<double>::infinity();
    std::vector<double> reference_wall;
    std::vector<double> candidate_wall;
    timing_decision decision = timing_decision::go_on;
    while (decision == timing_decision::go_on) {
      // What a program has learnt of the numbers that contents are put together from is worth
      // nothing to the next prepare().
      inputs_->inputs.renew(*random_);
      new_parameters();
      const bool reference_first = random_->below(2) == 0;
      batch_time r;
      if (reference_first) r = time_reference();
      // Which rounds are checked, nobody can know.
      const bool is_late = result.log_ratios.size() >= rules_.min_rounds;
      const bool is_checked = random_->below(is_late ? check_one_in_late : check_one_in) == 0;
      const batch_time c = candidate_.batch(
          rules_.lead_in_ns, rules_.batch_ns, limits_.call, [this] { checks_.check(); },
          is_checked);
      if (!reference_first) r = time_reference();
      clocked += r.device_ns + c.device_ns;
      reference_us.push_back(r.device_us());
      candidate_us.push_back(c.device_us());
      fastest_us = std::min(fastest_us, c.least_ns / 1e3);
      reference_wall.push_back(r.wall_us());
      candidate_wall.push_back(c.wall_us());
      result.log_ratios.push_back(std::log(r.device_us() / c.device_us()));
      decision = decide(rules_, result.log_ratios, clocked);
    }
    // One batch more, which does not count: nobody can tell it from those that did.
    candidate_.batch(rules_.lead_in_ns, rules_.batch_ns, limits_.call);
    checks_.check_all();
    result.rounds = static_cast<std::uint32_t>(result.log_ratios.size());
    result.ratio = summarise(result.log_ratios);
    result.reference_us = median(reference_us);
    result.candidate_us = median(candidate_us);
    result.reference_wall_us = median(reference_wall);
    result.candidate_wall_us = median(candidate_wall);
    result.floor_us = limits_.floor_us_a_byte * static_cast<double>(least_bytes_);
    if (const auto impossible = find_impossible_time(fastest_us, result.floor_us)) {
      result.failure = *impossible;
    } else if (candidate_.share_outside() > outside_share) {
      result.failure = {
          Outcome::CHEATING, "late_work",
          "works while the clock stands still: " + text(100 * candidate_.share_outside()) +
              " % of its time lies between the timed runs"};
    } else if (decision == timing_decision::unstable) {
      result.failure = {Outcome::UNSTABLE, "",
                        "the 95 % interval of the speed-up, " + text(result.ratio.range.low) +
                            " to " + text(result.ratio.range.high) + ", stays too wide"};
    } else {
      result.failure = {Outcome::OK, "", ""};
    }
  }

  // A random call of the last run, compared like any other; the process stands still meanwhile.
  program_failure look_at_candidate(std::optional<distribution> how, verification_result& totals) {
    const value_set drawn = how ? inputs_->inputs.draw(*how, random_->bits()) : value_set{};
    const std::size_t call = how ? candidate_.run_otherwise(drawn, limits_.call)
                                 : random_->below(candidate_.last_sets().size());
    const std::size_t set = candidate_.last_sets()[call];
    const value_set& inputs = how ? drawn : candidate_.values(set);
    const program_failure wrong = left_.for_judge([&] {
      return judge_by_degrees(totals, [&](exactness with, verification_result& seen) {
        const expected_outputs expected = pair_->oracle.expect(inputs, parameters_, with);
        return check_call(pair_->candidate, call, set, inputs, parameters_, expected,
                          pair_->oracle.aliases(), pair_->oracle.of(), seen);
      });
    });
    if (wrong.outcome == Outcome::OK)
      least_bytes_ = std::min(least_bytes_, writes_outputs(pair_->oracle.aliases())
                                                ? pair_->candidate.output_bytes(call)
                                                : 0);
    return wrong;
  }

  const timed_pair* pair_;
  timed_inputs* inputs_;
  timing_rules rules_;
  timing_limits limits_;
  random_stream* random_;
  patience left_;
  side candidate_;
  side reference_;
  value_set parameters_;
  timed_checks checks_;
  std::size_t least_bytes_ =
      std::numeric_limits<std::size_t>::max();  // that a checked call wrote; the warm-up checks one
                                                // at least
};

}  // namespace

std::size_t affordable_sets(std::size_t bytes_a_call, std::size_t memory_budget) {
  return std::clamp<std::size_t>(memory_budget / std::max<std::size_t>(bytes_a_call, 1), 2,
                                 max_sets);
}

void scale_speedups(double log_factor, case_timing& timing) {
  const double factor = std::exp(log_factor);
  for (double& log_ratio : timing.log_ratios) log_ratio += log_factor;
  for (double& bucket : timing.ratio.buckets) bucket *= factor;
  timing.ratio.speedup *= factor;
  timing.ratio.range = {factor * timing.ratio.range.low, factor * timing.ratio.range.high};
}

std::string print_number(double value, std::size_t decimals) {
  const std::string digits = std::to_string(value);
  return digits.substr(0, digits.find('.') + 1 + decimals);
}

std::optional<program_failure> find_impossible_time(double call_us, double floor_us) {
  if (call_us >= floor_us) return std::nullopt;
  return program_failure{Outcome::CHEATING, "impossible_time",
                         "a call takes " + text(call_us) + " us, writing its outputs alone needs " +
                             text(floor_us) + " us"};
}

case_timing time_case(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
                      const timing_limits& limits, random_stream& random) {
  return protocol(pair, inputs, rules, limits, random).run();
}

}  // namespace hone
