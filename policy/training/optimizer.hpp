#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/network/decoder_weights.hpp"

namespace hone {

struct optimizer_options {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;      // applies to matrices, not to norms and biases
  double max_gradient_norm = 1.0;  // to which gradients are clipped; 0: not at all
};

// Learning rate over a stage: a linear warm-up to `peak`, then a cosine decay to
// `final_share` * `peak`, which is then kept; without a decay, `peak` is kept.
struct rate_schedule {
  double peak = 1e-3;
  std::int64_t warm_up = 0;  // updates
  std::int64_t steps = 0;    // updates up to the end of the decay, with the warm-up; 0: no decay
  double final_share = 1.0;  // rate at the end of the decay, relative to `peak`
  // Returns the rate of an update, counted from 0. The decay is as far as the updates, or as a
  // `share` of it (0 to 1) that something else has reached, whichever is further.
  double at(std::int64_t step, double share = 0) const;
};

// State of an optimizer in host memory: the moments and master copies of the weights, and the
// number of updates.
class optimizer_moments {
 public:
  // Writes a safetensors file. Throws policy_error.
  void save(const std::filesystem::path& file) const;

 private:
  friend class optimizer;
  struct contents;
  explicit optimizer_moments(std::shared_ptr<const contents> of) : contents_(std::move(of)) {}
  std::shared_ptr<const contents> contents_;
};

// Applies AdamW (Loshchilov and Hutter, arXiv 1711.05101) to the weights of a decoder, with
// clipping of the global gradient norm. Weights of a dtype other than float32 have a master copy in
// float32 that the updates add up in, and are rounded from it: bfloat16 alone rounds an update away
// that is below 2^-9 of a weight (mixed precision, Micikevicius et al., arXiv 1710.03740, section
// 3.1). The state is saved with the weights, so training that resumes from a checkpoint equals
// training that was not interrupted.
class optimizer {
 public:
  // Updates equal weights on several devices, each of which adds its gradients and keeps a part of
  // the state (weight_shards.hpp). Replaces their tensors by differentiable copies. The weights
  // must outlive the optimizer, and their tensors must not be replaced afterwards.
  optimizer(const std::vector<decoder_weights*>& replicas, const optimizer_options& options);
  ~optimizer();

  // Makes one update from the gradients of the weights and clears these gradients. Returns the
  // global gradient norm before clipping. A norm that is not finite leaves the weights, the moments
  // and the number of updates unchanged.
  double step(double rate);
  // Returns the number of updates that were applied.
  std::int64_t steps() const;

  // Resets the moments and the number of updates. Master copies stay.
  void restart();

  // Returns a copy of the state in host memory.
  optimizer_moments moments() const;
  // Replaces the state by a saved one; if that has no master copies, the weights are copied. Throws
  // policy_error if the file is missing or damaged, or does not fit the weights.
  void load(const std::filesystem::path& file);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
