#include "evaluation/judge/paired_timing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace hone {
namespace {

// A warm-up ends after this number of runs, even if they are short.
constexpr std::size_t max_warm_up_runs = 64;
constexpr double infinity = std::numeric_limits<double>::infinity();

// One side's share of a round: one run or several.
struct batch_time {
  double call_ns = infinity;     // of the fastest run
  double clocked_ns = infinity;  // per call, of the run that was fastest by its clock alone
  double spent_ns = 0;
  double wall_ns = 0;
  std::size_t calls = 0;
  double wall_call_ns() const { return wall_ns / static_cast<double>(calls); }
};

struct batch_plan {
  double lead_in_ns = 0;  // uncounted calls before the first run and after each check
  double target_ns = 0;   // least time of the batch, unless max_runs ends it
  double runs = 1;        // least number of runs, if calls are short enough
  std::size_t max_runs = 1;
  std::size_t min_runs = 1;
};

// Makes one side's batches and decides after which of the runs a check is due.
class batch_maker {
 public:
  batch_maker(timed_side& side, const timing_rules& rules, random_stream& random)
      : side_(&side), rules_(&rules), random_(&random) {}

  void warm_up(std::uint64_t seed, const std::function<void()>& check) {
    fastest_checked_ns_ = 0;  // no run of the warm-up is suspiciously fast
    side_->begin_warm_up(seed);
    const batch_time first = make({.max_runs = 1}, nullptr, false);  // a call may load code
    const bool checks_every_run = rules_->checks_every_warm_up_run;
    if (checks_every_run || first.spent_ns < rules_->warm_up_ns)
      make({0, rules_->warm_up_ns, rules_->runs_per_batch, max_warm_up_runs},
           checks_every_run ? check : nullptr, true);
    side_->end_warm_up();
    if (!checks_every_run && check != nullptr) check();  // of the last run
    fastest_checked_ns_ = infinity;  // the first run of the rounds is suspiciously fast
  }

  // Makes a batch for a round. If `is_drawn`, `check` is called after one run, drawn at random
  // among as many runs as the last batch had: a program that could predict the checked run could be
  // right in that run alone. `check` is also called after every suspiciously fast run. It may be
  // empty.
  batch_time make(double batch_ns, const std::function<void()>& check, bool is_drawn) {
    return make({rules_->lead_in_ns, batch_ns, rules_->runs_per_batch, rules_->max_runs_per_batch,
                 rules_->min_runs_per_batch},
                check, is_drawn);
  }

 private:
  batch_time make(const batch_plan& plan, const std::function<void()>& check, bool is_drawn) {
    if (plan.lead_in_ns > 0) side_->run(plan.lead_in_ns);
    batch_time total;
    const std::size_t drawn = random_->below(last_runs_);
    bool is_checked = false;
    std::size_t runs = 0;
    while (runs < plan.max_runs && (runs < plan.min_runs || total.spent_ns < plan.target_ns)) {
      const double left_ns = std::max(0.0, plan.target_ns - total.spent_ns);
      const run_time run = side_->run(std::min(left_ns, plan.target_ns / plan.runs));
      add(run, total);
      const bool is_last =
          ++runs == plan.max_runs || (runs >= plan.min_runs && total.spent_ns >= plan.target_ns);
      if (check == nullptr) continue;
      // A batch that turns out shorter than the last one is checked at its end. In a longer batch,
      // further runs are drawn for a check.
      const bool is_due =
          is_drawn && (is_checked ? runs > last_runs_ && random_->below(last_runs_) == 0
                                  : runs > drawn || is_last);
      if (!is_due && run.call_ns >= rules_->suspicious_ratio * fastest_checked_ns_) continue;
      check();
      is_checked = is_checked || is_due;
      fastest_checked_ns_ = std::min(fastest_checked_ns_, run.call_ns);
      if (plan.lead_in_ns > 0 && !is_last) side_->run(plan.lead_in_ns);
    }
    last_runs_ = runs;
    return total;
  }

  static void add(const run_time& run, batch_time& total) {
    total.call_ns = std::min(total.call_ns, run.call_ns);
    total.clocked_ns = std::min(total.clocked_ns, run.clocked_ns);
    total.spent_ns += run.spent_ns;
    total.wall_ns += run.wall_ns;
    total.calls += run.calls;
  }

  timed_side* side_;
  const timing_rules* rules_;
  random_stream* random_;
  std::size_t last_runs_ = 1;
  double fastest_checked_ns_ = infinity;
};

// The protocol of time_pair(), one function per phase.
class paired_timing {
 public:
  paired_timing(timed_side& candidate, timed_side& reference, const timing_rules& rules,
                random_stream& random, time_budget& budget, timed_checks* checks)
      : candidate_(&candidate),
        reference_(&reference),
        rules_(rules),
        random_(&random),
        budget_(&budget),
        checks_(checks),
        candidate_batches_(candidate, rules_, random),
        reference_batches_(reference, rules_, random) {
    if (checks != nullptr) check_ = [checks] { checks->check(); };
  }

  void warm_up() {
    set_parameters();
    const std::uint64_t contents = random_->bits() | 1U;
    budget_->for_reference([&] { reference_batches_.warm_up(contents, nullptr); });
    candidate_batches_.warm_up(contents, check_);
  }

  // Both sides get batches of the same length. If one side needs long batches, the other side's may
  // be as long, because longer batches are less noisy and need fewer rounds.
  void calibrate() {
    budget_->for_reference([&] { reference_->recalibrate(); });
    batch_ns_ =
        std::max({rules_.batch_ns, reference_->least_batch_ns(), candidate_->least_batch_ns()});
  }

  bool wants_another_round() const { return decision_ == timing_decision::go_on; }

  void time_round() {
    if (random_->below(rules_.new_parameters_one_in) == 0) set_parameters();
    budget_->check();
    const std::uint64_t contents = random_->bits();
    candidate_->begin_round(contents);
    reference_->begin_round(contents);
    std::optional<batch_time> reference;
    if (random_->below(2) == 0) reference = time_reference();
    const bool is_past_min_rounds = timing_.log_ratios.size() >= rules_.min_rounds;
    const bool is_checked =
        random_->below(is_past_min_rounds ? rules_.check_one_in_late : rules_.check_one_in) == 0;
    // Before a check the reference has its turn, unless the candidate's batch would be interrupted:
    // what the reference has computed for the same contents is then what the check expects.
    const auto check = [&] {
      if (!reference && rules_.max_runs_per_batch == 1) reference = time_reference();
      check_();
    };
    const batch_time candidate = candidate_batches_.make(
        batch_ns_, check_ == nullptr ? std::function<void()>() : check, is_checked);
    if (!reference) reference = time_reference();
    record(*reference, candidate);
    decision_ = decide(rules_, timing_.log_ratios, clocked_ns_);
  }

  // Makes the last checks after a batch that does not count but looks like the batches that did.
  void check_at_end() {
    if (checks_ == nullptr || decision_ == timing_decision::confirmed) return;
    candidate_batches_.make(batch_ns_, nullptr, false);
    checks_->check_at_end(rules_.distributions_at_end);
  }

  case_timing summarise_rounds() {
    timing_.is_confirmed = decision_ == timing_decision::confirmed;
    timing_.rounds = static_cast<std::uint32_t>(timing_.log_ratios.size());
    timing_.ratio = summarise(timing_.log_ratios);
    timing_.reference_us = median(reference_us_);
    timing_.candidate_us = median(candidate_us_);
    timing_.reference_wall_us = median(reference_wall_us_);
    timing_.candidate_wall_us = median(candidate_wall_us_);
    timing_.clocked_candidate_us = median(clocked_candidate_us_);
    if (is_unstable()) {
      timing_.failure = program_failure{
          Outcome::UNSTABLE, "",
          "the rounds' speed-ups spread too far: the 95 % interval of their median is " +
              print_number(timing_.ratio.range.low, 3) + " to " +
              print_number(timing_.ratio.range.high, 3)};
    }
    return std::move(timing_);
  }

  case_timing fail(const program_failure& why) {
    timing_.failure = why;
    return std::move(timing_);
  }

 private:
  void set_parameters() {
    const std::uint64_t seed = random_->bits();
    candidate_->set_parameters(seed);
    budget_->for_reference([&] { reference_->set_parameters(seed); });
  }

  batch_time time_reference() {
    return budget_->for_reference(
        [&] { return reference_batches_.make(batch_ns_, nullptr, false); });
  }

  void record(const batch_time& reference, const batch_time& candidate) {
    clocked_ns_ += reference.spent_ns + candidate.spent_ns;
    reference_us_.push_back(reference.call_ns / 1e3);
    candidate_us_.push_back(candidate.call_ns / 1e3);
    reference_wall_us_.push_back(reference.wall_call_ns() / 1e3);
    candidate_wall_us_.push_back(candidate.wall_call_ns() / 1e3);
    clocked_candidate_us_.push_back(candidate.clocked_ns / 1e3);
    timing_.log_ratios.push_back(std::log(reference.call_ns / candidate.call_ns));
  }

  bool is_unstable() const {
    if (decision_ == timing_decision::unstable) return true;
    if (decision_ == timing_decision::hopeless || decision_ == timing_decision::confirmed)
      return false;
    return spreads_too_far(rules_, timing_.ratio);
  }

  timed_side* candidate_;
  timed_side* reference_;
  timing_rules rules_;
  random_stream* random_;
  time_budget* budget_;
  timed_checks* checks_;
  std::function<void()> check_;  // checks the candidate's last run; empty for equal programs
  batch_maker candidate_batches_;
  batch_maker reference_batches_;
  double batch_ns_ = 0;
  double clocked_ns_ = 0;
  timing_decision decision_ = timing_decision::go_on;
  std::vector<double> reference_us_;  // by round, as are the next four
  std::vector<double> candidate_us_;
  std::vector<double> reference_wall_us_;
  std::vector<double> candidate_wall_us_;
  std::vector<double> clocked_candidate_us_;
  case_timing timing_;
};

}  // namespace

case_timing time_pair(timed_side& candidate, timed_side& reference, const timing_rules& rules,
                      random_stream& random, time_budget& budget, timed_checks* checks) {
  paired_timing timing(candidate, reference, rules, random, budget, checks);
  try {
    timing.warm_up();
    timing.calibrate();
    while (timing.wants_another_round()) timing.time_round();
    timing.check_at_end();
    return timing.summarise_rounds();
  } catch (const timing_failure& e) {
    return timing.fail(e.why);
  }
}

}  // namespace hone
