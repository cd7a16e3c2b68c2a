#include "evaluation/judge/paired_timing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
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

// Makes one side's batches and decides which of their runs are checked, after each run.
class batch_maker {
 public:
  batch_maker(timed_side& side, const timing_rules& rules, random_stream& random)
      : side_(&side), rules_(&rules), random_(&random) {}

  // `check` may be empty, here and below.
  void warm_up(std::uint64_t seed, const std::function<void()>& check) {
    side_->begin_warm_up(seed);
    double last_ns = 0;
    const auto note = [&](const run_time& run) {
      last_ns = run.call_ns;
      if (check && rules_->checks_every_warm_up_run) check();
      return false;
    };
    const batch_time first = make({.max_runs = 1}, note);  // a call may load code
    if (rules_->checks_every_warm_up_run || first.spent_ns < rules_->warm_up_ns)
      make({0, rules_->warm_up_ns, rules_->runs_per_batch, max_warm_up_runs}, note);
    side_->end_warm_up();
    if (check && !rules_->checks_every_warm_up_run) check();
    fastest_checked_ns_ = last_ns;
    const double share = rules_->warm_up_ns > 0 ? rules_->batch_ns / rules_->warm_up_ns : 1;
    last_runs_ =
        static_cast<std::size_t>(std::clamp(share * static_cast<double>(last_runs_), 1.0,
                                            static_cast<double>(rules_->max_runs_per_batch)));
  }

  // Makes a batch that counts. Any of its runs is checked with the same probability, whatever
  // happened before it. A suspiciously fast run is checked as well.
  batch_time make_counted(double batch_ns, const std::function<void()>& check) {
    const std::uint64_t one_in = rules_->check_one_in * last_runs_;
    return make(plan_of(batch_ns), [&](const run_time& run) {
      const bool is_suspicious = run.call_ns < rules_->suspicious_ratio * fastest_checked_ns_;
      if (!check || (random_->below(one_in) != 0 && !is_suspicious)) return false;
      fastest_checked_ns_ = std::min(fastest_checked_ns_, run.call_ns);
      check();
      return true;
    });
  }

  // Makes a batch that does not count, of which every second run is checked and one at least.
  batch_time make_uncounted(double batch_ns, const std::function<void()>& check) {
    bool is_checked = false;
    const batch_time made = make(plan_of(batch_ns), [&](const run_time&) {
      if (!check || random_->below(2) != 0) return false;
      check();
      return is_checked = true;
    });
    if (check && !is_checked) check();  // the last run
    return made;
  }

 private:
  batch_plan plan_of(double batch_ns) const {
    return {rules_->lead_in_ns, batch_ns, rules_->runs_per_batch, rules_->max_runs_per_batch,
            rules_->min_runs_per_batch};
  }

  // `after_run` returns true if it took time, so that the side needs another lead-in.
  batch_time make(const batch_plan& plan, const std::function<bool(const run_time&)>& after_run) {
    if (plan.lead_in_ns > 0) side_->run(plan.lead_in_ns);
    batch_time total;
    std::size_t runs = 0;
    while (runs < plan.max_runs && (runs < plan.min_runs || total.spent_ns < plan.target_ns)) {
      const double left_ns = std::max(0.0, plan.target_ns - total.spent_ns);
      const run_time run = side_->run(std::min(left_ns, plan.target_ns / plan.runs));
      add(run, total);
      ++runs;
      const bool is_last =
          runs == plan.max_runs || (runs >= plan.min_runs && total.spent_ns >= plan.target_ns);
      if (after_run(run) && plan.lead_in_ns > 0 && !is_last) side_->run(plan.lead_in_ns);
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
  std::size_t last_runs_ = 1;  // of the last batch, or as many as the warm-up promises for one
  double fastest_checked_ns_ = infinity;  // of the warm-up's last run and the checked runs after it
};

// The protocol of time_pair(), one function per phase.
class paired_timing {
 public:
  paired_timing(timed_side& candidate, timed_side& reference, const timing_rules& rules,
                random_stream& random, timed_checks* checks)
      : candidate_(&candidate),
        reference_(&reference),
        rules_(rules),
        random_(&random),
        checks_(checks),
        candidate_batches_(candidate, rules_, random),
        reference_batches_(reference, rules_, random) {
    if (checks != nullptr) check_ = [checks] { checks->check(); };
  }

  void warm_up() {
    set_parameters(distribution::declared);
    const std::uint64_t contents = random_->bits() | 1U;
    reference_batches_.warm_up(contents, nullptr);
    candidate_batches_.warm_up(contents, check_);
  }

  // Both sides get batches of the same length. If one side needs long batches, the other side's may
  // be as long, because longer batches are less noisy and need fewer rounds.
  void calibrate() {
    reference_->recalibrate();
    batch_ns_ = std::max({rules_.batch_ns, reference_->min_batch_ns(), candidate_->min_batch_ns()});
  }

  bool wants_another_round() const { return decision_ == timing_decision::go_on; }

  void time_round() {
    drawn_round round{random_->bits()};
    if (checks_ != nullptr) round = checks_->draw(round.seed, rules_);
    const bool counts = round.counts();
    renew_parameters(round.of_calls.front());
    candidate_->begin_round(round);
    reference_->begin_round(round);
    std::optional<batch_time> reference;
    if (random_->below(2) == 0) reference = time_reference();
    // Before a check the reference has its turn, unless the candidate's batch would be interrupted:
    // what the reference has computed for the same contents is then what the check expects.
    const bool has_many_checks = !counts && other_rounds_++ < rules_.first_other_rounds;
    const std::size_t checks = has_many_checks ? rules_.checks_of_other_runs : 1;
    const auto check = [&] {
      if (!reference && rules_.max_runs_per_batch == 1) reference = time_reference();
      for (std::size_t i = 0; i < checks; ++i) check_();
    };
    const std::function<void()> check_if_any = check_ ? check : std::function<void()>();
    const batch_time candidate = counts
                                     ? candidate_batches_.make_counted(batch_ns_, check_if_any)
                                     : candidate_batches_.make_uncounted(batch_ns_, check_if_any);
    if (!reference) reference = time_reference();
    spent_per_call_ns_ = candidate.spent_ns / static_cast<double>(candidate.calls);
    if (!counts) return;
    record(*reference, candidate);
    decision_ = decide(rules_, timing_.log_ratios, clocked_ns_);
  }

  // Checks calls with other contents after the rounds, of which the candidate cannot know that they
  // are over. A program may be right for declared contents alone once it has been called often
  // enough. Another measurement of the program confirms what this one has checked.
  void check_others() {
    if (checks_ == nullptr || rules_.last_checks == 0) return;
    if (decision_ != timing_decision::settled) return;
    for (const drawn_round& last : checks_->draw_last(random_->bits(), rules_)) {
      renew_parameters(last.of_calls.front());
      candidate_->begin_round(last);
      reference_->begin_round(last);
      for (std::size_t made = 0; made < last.of_calls.size();) {
        const std::size_t before = made;
        // One run for all calls, because every run has a fixed cost.
        const double target_ns =
            spent_per_call_ns_ * (static_cast<double>(last.of_calls.size() - made) + 0.5);
        made += candidate_->run(target_ns).calls;
        reference_->run(target_ns);  // the checks expect its results
        for (std::size_t i = before; i < std::min(made, last.of_calls.size()); ++i)
          checks_->check(last.of_calls[i]);
      }
    }
  }

  case_timing summarize_rounds() {
    timing_.is_confirmed = decision_ == timing_decision::confirmed;
    timing_.rounds = static_cast<std::uint32_t>(timing_.log_ratios.size());
    timing_.ratio = summarize(timing_.log_ratios);
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
  // Parameters of another distribution serve one round.
  void renew_parameters(distribution how) {
    const bool is_due = random_->below(rules_.new_parameters_one_in) == 0;
    if (how == distribution::weights) {
      set_parameters(how);
    } else if (is_due || parameters_ != distribution::declared) {
      set_parameters(distribution::declared);
    }
  }

  void set_parameters(distribution how) {
    parameters_ = how;
    const drawn_contents contents{random_->bits(), 0, how};
    candidate_->set_parameters(contents);
    reference_->set_parameters(contents);
  }

  batch_time time_reference() { return reference_batches_.make_counted(batch_ns_, nullptr); }

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
  timed_checks* checks_;
  std::function<void()> check_;  // checks the candidate's last run; empty for equal programs
  batch_maker candidate_batches_;
  batch_maker reference_batches_;
  distribution parameters_ = distribution::declared;
  double batch_ns_ = 0;
  double clocked_ns_ = 0;
  std::size_t other_rounds_ = 0;  // rounds that do not count, so far
  double spent_per_call_ns_ = 0;  // by the candidate, in the last round
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
                      random_stream& random, timed_checks* checks) {
  paired_timing timing(candidate, reference, rules, random, checks);
  try {
    timing.warm_up();
    timing.calibrate();
    while (timing.wants_another_round()) timing.time_round();
    timing.check_others();
    return timing.summarize_rounds();
  } catch (const timing_failure& e) {
    return timing.fail(e.why);
  }
}

}  // namespace hone
