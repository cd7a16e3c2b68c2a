#include "launch/run/run_pace.hpp"

#include <algorithm>

namespace hone {

double run_pace::samples_in(Stage stage) const {
  const auto found = work_.find(stage);
  return found == work_.end() ? 0 : found->second.samples;
}

void run_pace::observe(const reading& r, double now_s) {
  if (!r.has_begun) {
    first_.reset();
    return;
  }
  if (!first_ || first_->stage != r.stage) {
    first_ = r;
    first_s_ = now_s;
  }
  last_ = r;
  last_s_ = now_s;
  const double new_steps = r.step - first_->step;
  const double samples = r.steps > 0 ? samples_in(r.stage) * new_steps / r.steps : 0;
  if (samples > 0) s_per_sample_ = (now_s - first_s_) / samples;
}

std::optional<double> run_pace::stage_left_s() const {
  if (!first_) return std::nullopt;
  std::optional<double> left;
  const double new_steps = last_.step - first_->step;
  const double spent_s = last_s_ - first_s_;
  if (new_steps > 0) {
    left = spent_s / new_steps * (last_.steps - last_.step);
  } else if (s_per_sample_ && samples_in(last_.stage) > 0 && last_.steps > 0) {
    const double share = (last_.steps - last_.step) / last_.steps;
    left = std::max(0.0, *s_per_sample_ * samples_in(last_.stage) * share - spent_s);
  }
  if (last_.limit_s && (left || last_.step > 0))
    left = std::clamp(*last_.limit_s, 0.0, std::max(0.0, left.value_or(*last_.limit_s)));
  return left;
}

std::optional<double> run_pace::run_left_s() const {
  auto left = stage_left_s();
  if (!left || !s_per_sample_) return std::nullopt;
  for (const auto& [stage, work] : work_) {
    if (stage <= last_.stage) continue;
    double of_stage = *s_per_sample_ * work.samples;
    if (work.limit_s) of_stage = std::min(of_stage, *work.limit_s);
    *left += of_stage;
  }
  return left;
}

}  // namespace hone
