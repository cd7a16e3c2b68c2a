#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "evaluation/judge/timing.hpp"

namespace hone {

// Whether the timing of a case that has gone on for so long is to end: `least_ns`, and five times what its reference has taken, is as long as a
// candidate may take that is worth timing at all.
inline bool has_dragged_on(double whole_ns, double reference_ns, double least_ns) {
  constexpr double hopeless = 5;
  return whole_ns - reference_ns > least_ns + hopeless * reference_ns;
}

// Ends the timing of one case that drags on. Budgets bound what is clocked; this bounds what is not: prepare() above all, which runs once in every
// other round. One thread.
class patience {
 public:
  explicit patience(double least_ns) : least_ns_(least_ns) {}

  // Work that is the reference's own.
  template <class Work>
  decltype(auto) for_reference(Work&& work) {
    const on_account bill{this, clock::now()};
    return std::forward<Work>(work)();
  }

  // Throws timing_failure once too much time has passed.
  void check() const {
    const double whole_ns = since(begin_);
    if (!has_dragged_on(whole_ns, reference_ns_, least_ns_)) return;
    const auto seconds = [](double ns) { return std::to_string(static_cast<int>(ns / 1e9)) + " s"; };
    throw timing_failure{{Outcome::TIMEOUT, "", "timing it has taken " + seconds(whole_ns) + ", of which its reference took " + seconds(reference_ns_)}};
  }

 private:
  using clock = std::chrono::steady_clock;
  static double since(clock::time_point begin) { return std::chrono::duration<double, std::nano>(clock::now() - begin).count(); }
  struct on_account {
    patience* of;
    clock::time_point begin;
    ~on_account() { of->reference_ns_ += since(begin); }
  };

  double least_ns_;
  clock::time_point begin_ = clock::now();
  double reference_ns_ = 0;
};

}  // namespace hone
