#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "evaluation/judge/timing.hpp"

namespace hone {

// Ends the timing of one case that drags on. Budgets bound what is clocked; this bounds what is
// not: prepare() above all, which runs again and again, and whoever waits without working. A
// candidate has `least_ns`, and five times what its reference has taken so far: one that needs more
// is not worth timing at all. What the judge does for itself is nobody's. One thread.
class patience {
 public:
  using clock_ns = std::function<double()>;
  explicit patience(double least_ns, clock_ns now = steady_ns)
      : least_ns_(least_ns), now_(std::move(now)), begin_ns_(now_()) {}

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

  // What the candidate may still take; below 0: nothing.
  double left_ns() const {
    return least_ns_ + most_times_reference * reference_ns_ - candidate_ns();
  }
  // Throws timing_failure once nothing is left.
  void check() const {
    if (left_ns() >= 0) return;
    const auto seconds = [](double ns) {
      return std::to_string(static_cast<int>(ns / 1e9)) + " s";
    };
    throw timing_failure{{Outcome::TIMEOUT, "",
                          "timing it has taken " + seconds(candidate_ns()) + ", beside " +
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

  // Enters what passes in its life.
  class bill {
   public:
    bill(const patience& of, double& to) : of_(&of), to_(&to), begin_ns_(of.now_()) {}
    ~bill() { *to_ += of_->now_() - begin_ns_; }
    bill(const bill&) = delete;
    bill& operator=(const bill&) = delete;

   private:
    const patience* of_;
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
