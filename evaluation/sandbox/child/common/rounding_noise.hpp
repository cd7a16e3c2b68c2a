#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace at {
class Tensor;
}

namespace hone {

// Runs a reference with rounding noise, to find how far the outputs of a correct program may be
// from its own (doc/evaluation.md section 2). After each ATen operator, every element of a result
// changes by 1/2 to 3/2 of the error that a correct program may make there (operator_rounding.hpp),
// with a random sign. This is Monte Carlo arithmetic (Parker, "Monte Carlo arithmetic", 1997;
// Vignes, "Discrete stochastic arithmetic", 2004), with the amplitude of sums taken from the error
// of naive accumulation.
struct rounding_noise {
  double amplitude = 0;    // in errors of a correct program, of either sign; 0: no noise
  std::uint64_t seed = 0;  // of the signs and sizes
  bool tf32 = false;       // products and convolutions may round their operands to TF32
  // Many elements of the inputs are zero. Terms that are zero add no error to sums, and the errors
  // of terms that are equal add up.
  bool is_sparse = false;
  // Elements of the inputs are so small that their exponentials are equal in nearly all digits.
  bool has_small_inputs = false;
};

// Results of discontinuous operators: comparisons, rounding to integers, indices. A run with
// `record` appends them; a run with `replay` uses the recorded ones instead, so that its outputs
// differ from those of the recorded run by continuous errors alone.
enum class decision_use { ignore, record, replay };
using decision_log = std::vector<at::Tensor>;

// Makes the generators of random factors, which read their seeds from files. Must be called before
// the process is confined.
void prepare_rounding_noise();

// Calls `run` with noise and decisions as stated. Only operators on this thread are affected.
// Exceptions of `run` pass through.
void with_rounding_noise(const rounding_noise& noise, decision_use use, decision_log& decisions,
                         const std::function<void()>& run);

}  // namespace hone
