#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/sampled_side.hpp"

namespace hone::testing_support {

// A side whose calls take the time that a function returns, in nanoseconds.
class synthetic_side final : public sampled_side {
 public:
  synthetic_side(role plays, std::function<double()> call_ns)
      : sampled_side(plays), call_ns_(std::move(call_ns)) {}
  void set_parameters(const drawn_contents& contents) override { seeds.push_back(contents.seed); }
  std::vector<double> sample(std::size_t calls) override {
    std::vector<double> times;
    for (std::size_t i = 0; i < calls; ++i) times.push_back(call_ns_());
    return times;
  }
  std::size_t max_calls() const override { return 9; }

  std::vector<std::uint64_t> seeds;  // of all parameters so far

 private:
  std::function<double()> call_ns_;
};

// Returns the rules of a GPU, adapted to calls that take no real time.
inline timing_rules synthetic_rules() {
  timing_rules rules = gpu_timing_rules();
  rules.warm_up_ns = 0;
  // The budget is real time. It allows in the order of a hundred rounds of made-up calls.
  rules.clocked_budget_ns = 0.5e6;
  return rules;
}

// Returns log-normal noise of this standard deviation around `ns`.
inline std::function<double()> noisy(random_stream& noise, double ns, double deviation) {
  return [&noise, ns, deviation] {
    float z = 0;
    noise.fill_normal({&z, 1});
    return ns * std::exp(deviation * static_cast<double>(z));
  };
}

}  // namespace hone::testing_support
