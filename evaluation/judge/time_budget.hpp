#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "evaluation/judge/case_timing.hpp"

namespace hone {

// Limits the wall time of timing one case, because part of that time is not clocked: prepare(),
// which runs repeatedly, and calls that wait without working. A candidate may take `least_ns` plus
// five times the time that its reference has taken so far. The judge's own time counts for neither
// of them. Times in nanoseconds of the clock `now`. Confined to one thread.
class time_budget {
 public:
  using clock_ns = std::function<double()>;
  explicit time_budget(double least_ns, clock_ns now = steady_ns)
      : least_ns_(least_ns), now_(std::move(now)), begin_ns_(now_()) {}

  // Run `work`, charge its time to the reference or to the judge, and return its result. The two
  // must not be nested. All other time is the candidate's.
  template <class Work>
  decltype(auto) for_reference(Work&& work) {
    const bill to{*this, reference_ns_};
    return std::forward<Work>(work)();
  }
  template <class Work>
  decltype(auto) for_judge(Work&& work) {
    const bill to{*this, judge_ns_};
    return std::forward<Work>(work)();
  }

  // Returns the nanoseconds that the candidate may still take; negative if it has taken too much.
  double left_ns() const {
    return least_ns_ + most_times_reference * reference_ns_ - candidate_ns();
  }
  // Throws timing_failure if the candidate has taken too much.
  void check() const {
    if (left_ns() >= 0) return;
    const auto seconds = [](double ns) {
      return std::to_string(static_cast<int>(ns / 1e9)) + " s";
    };
    throw timing_failure{{Outcome::TIMEOUT, "",
                          "timing the program has taken " + seconds(candidate_ns()) + ", beside " +
                              seconds(reference_ns_) + " for its reference"}};
  }

 private:
  static constexpr double most_times_reference = 5;
  static double steady_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  double candidate_ns() const { return now_() - begin_ns_ - reference_ns_ - judge_ns_; }

  // Adds the time from its construction to its destruction to an account.
  class bill {
   public:
    bill(const time_budget& of, double& to) : of_(&of), to_(&to), begin_ns_(of.now_()) {}
    ~bill() { *to_ += of_->now_() - begin_ns_; }
    bill(const bill&) = delete;
    bill& operator=(const bill&) = delete;

   private:
    const time_budget* of_;
    double* to_;
    double begin_ns_;
  };

  double least_ns_;
  clock_ns now_;
  double begin_ns_;
  double reference_ns_ = 0;
  double judge_ns_ = 0;
};

}  // namespace hone
