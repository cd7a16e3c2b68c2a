#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>
#include <vector>

#include "evaluation/sandbox/child/common/operator_rounding.hpp"

namespace hone {

// Computes an operator by its textbook formula instead of PyTorch's algorithm: normalization and
// variance by sums and sums of squares, attention by its definition. The formula's own operators
// get noise. Replaces the arguments on the stack by the results and returns true, or returns false
// if the rule has no formula.
bool compute_by_formula(rounding_kind kind, const c10::OperatorHandle& op,
                        torch::jit::Stack& stack);

// Turns off the libraries' fused recurrent networks for as long as it lives.
class without_fused_recurrence {
 public:
  explicit without_fused_recurrence(bool is_needed);
  ~without_fused_recurrence();
  without_fused_recurrence(const without_fused_recurrence&) = delete;
  without_fused_recurrence& operator=(const without_fused_recurrence&) = delete;

 private:
  bool is_needed_;
  bool cudnn_;
  bool mkldnn_;
};

// Returns the elements that `indices` select, for an operator that returns selected elements and
// their indices. `own`: the operator's own result, which is returned if its kind is unknown.
at::Tensor selected(const c10::OperatorHandle& op, const std::vector<c10::IValue>& inputs,
                    const at::Tensor& own, const at::Tensor& indices);

}  // namespace hone
