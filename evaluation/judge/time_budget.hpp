#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"

namespace hone {

// Limits the wall time that one verification or measurement gives a candidate, for everything it
// may do: loading, prepare(), calls in rounds and in bursts, in every attempt. A candidate may take
// `min_ns` plus five times the time that its reference has taken so far. The judge's own time
// counts for neither of them. Times in nanoseconds of the clock `now`. Confined to one thread.
class time_budget {
 public:
  using clock_ns = std::function<double()>;
  explicit time_budget(double min_ns = 60e9, clock_ns now = steady_ns)
      : min_ns_(min_ns), now_(std::move(now)) {}

  // Run `work` on a deadline, charge its time to one of the two, and return its result, which is a
  // program_result. `limit`: for this piece of work alone. A candidate whose budget is spent fails
  // with a timeout.
  template <class Work>
  auto for_candidate(std::chrono::milliseconds limit, Work&& work) -> decltype(work(time_point())) {
    if (left_ns() < 0) return failed(Outcome::TIMEOUT, describe());
    const bill to{*this, candidate_ns_};
    const auto left = std::chrono::milliseconds(1 + static_cast<std::int64_t>(left_ns() / 1e6));
    return std::forward<Work>(work)(time_point::clock::now() + std::min(limit, left));
  }
  template <class Work>
  auto for_reference(std::chrono::milliseconds limit, Work&& work) -> decltype(work(time_point())) {
    const bill to{*this, reference_ns_};
    return std::forward<Work>(work)(time_point::clock::now() + limit);
  }

  // Returns the nanoseconds that the candidate may still take; negative if it has taken too much.
  double left_ns() const { return min_ns_ + max_times_reference * reference_ns_ - candidate_ns_; }

 private:
  static constexpr double max_times_reference = 5;
  static double steady_ns() {
    return std::chrono::duration<double, std::nano>(time_point::clock::now().time_since_epoch())
        .count();
  }
  std::string describe() const {
    const auto seconds = [](double ns) {
      return std::to_string(static_cast<int>(ns / 1e9)) + " s";
    };
    return "the program has taken " + seconds(candidate_ns_) + ", and its reference " +
           seconds(reference_ns_);
  }

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

  double min_ns_;
  clock_ns now_;
  double candidate_ns_ = 0;
  double reference_ns_ = 0;
};

}  // namespace hone
