#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "policy/transformer.hpp"

namespace hone {

struct optimizer_options {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // on matrices only
  double max_gradient_norm = 1.0;
};

// A learning rate over a stage: linear warm-up, then constant or a cosine down to a share of the
// peak.
struct rate_schedule {
  double peak = 1e-3;
  std::int64_t warm_up = 0;
  std::int64_t steps = 0;              // of the whole schedule; 0: constant after the warm-up
  double final_share = 1.0;            // of the peak, at the end of the cosine
  double at(std::int64_t step) const;  // step 0 is the first
};

// What an optimizer remembers, in host memory.
class optimizer_moments {
 public:
  void save(const std::filesystem::path& file) const;  // throws policy_error

 private:
  friend class optimizer;
  struct contents;
  explicit optimizer_moments(std::shared_ptr<const contents> of) : contents_(std::move(of)) {}
  std::shared_ptr<const contents> contents_;
};

// AdamW (Loshchilov and Hutter, arXiv 1711.05101) over a decoder's weights, with clipping of the
// gradients' global norm. Its moments are saved beside the weights, so that training goes on from a
// checkpoint as if it had never stopped.
class optimizer {
 public:
  // Makes the weights differentiable. They must outlive the optimizer and not be replaced.
  optimizer(decoder_weights& weights, const optimizer_options& options);
  ~optimizer();

  // One step from the gradients that the weights hold now, which are cleared. Returns the
  // gradients' norm before clipping; a norm that is not finite changes nothing.
  double step(double rate);
  std::int64_t steps() const;

  // From a GPU they are copied; on the CPU they are the optimizer's own, as they are now until its
  // next step.
  optimizer_moments moments() const;
  void load(const std::filesystem::path& file);  // throws policy_error

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
