#include "evaluation/sandbox/child/common/rounding_noise.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "evaluation/sandbox/child/common/operator_errors.hpp"
#include "evaluation/sandbox/child/common/operator_rounding.hpp"
#include "evaluation/sandbox/child/common/random_factors.hpp"
#include "evaluation/sandbox/child/common/textbook_formulas.hpp"

namespace hone {
namespace {

using c10::DispatchKey;
using c10::IValue;
using torch::jit::Stack;

// LibTorch calls the fallback of this key for every operator that is called while the key is
// included.
constexpr auto the_key = DispatchKey::TESTING_ONLY_GenericMode;

// The formula that a tensor is the result of, as far as its rounding depends on it.
enum class formula { other, exp, one_plus_exp };

struct noisy_run {
  rounding_noise noise;
  decision_use use;
  decision_log* decisions;
  std::size_t next_decision = 0;
  bool counts_zeros = false;
  std::unordered_map<const void*, formula> formulas;  // by tensor
  // The last results that are polynomials, with the magnitudes of their terms.
  std::deque<std::pair<at::Tensor, at::Tensor>> polynomials;
};
constexpr std::size_t max_polynomials = 4;
thread_local noisy_run* current = nullptr;

formula formula_of(const IValue& value) {
  if (!value.isTensor()) return formula::other;
  const auto found = current->formulas.find(value.toTensor().unsafeGetTensorImpl());
  return found != current->formulas.end() ? found->second : formula::other;
}

// Notes the formula of a result. A result without one may have the address of an earlier tensor.
void note_formula(std::string_view name, const std::vector<IValue>& inputs, const at::Tensor& y) {
  formula made = formula::other;
  if (name == "aten::exp") made = formula::exp;
  if (name == "aten::add" && formula_of(inputs[0]) == formula::exp && inputs[1].isScalar() &&
      inputs[1].toScalar().toDouble() == 1)
    made = formula::one_plus_exp;
  if (made == formula::other) {
    current->formulas.erase(y.unsafeGetTensorImpl());
  } else {
    current->formulas[y.unsafeGetTensorImpl()] = made;
  }
}

at::Tensor expanded_magnitude(const at::Tensor& of) {
  for (const auto& [polynomial, magnitude] : current->polynomials) {
    if (polynomial.is_same(of)) return magnitude;
  }
  return {};
}

void note_polynomial(const at::Tensor& y, const at::Tensor& magnitude) {
  if (!magnitude.defined()) return;
  current->polynomials.emplace_front(y, magnitude);
  if (current->polynomials.size() > max_polynomials) current->polynomials.pop_back();
}

bool is_one_over_one_plus_exp(std::string_view name, const std::vector<IValue>& inputs) {
  if (name == "aten::reciprocal") return formula_of(inputs[0]) == formula::one_plus_exp;
  return name == "aten::div" && formula_of(inputs[1]) == formula::one_plus_exp;
}

// Returns a recorded decision instead of `own`, or records `own`. A decision of another shape, or a
// missing one, belongs to another path through the program and is not used.
at::Tensor decided(const at::Tensor& own) {
  noisy_run& run = *current;
  if (run.use == decision_use::record) run.decisions->push_back(own.clone());
  if (run.use != decision_use::replay || run.next_decision >= run.decisions->size()) return own;
  const at::Tensor& recorded = (*run.decisions)[run.next_decision++];
  return recorded.sizes() == own.sizes() ? recorded.to(own.scalar_type()) : own;
}

void add_noise_at_once(at::Tensor& to, double relative, const at::Tensor& absolute) {
  const double scale = current->noise.amplitude;
  if (relative > 0) {
    const at::Tensor factors = random_factors(to);
    const at::Tensor one = at::scalar_tensor(1, factors.options().device(at::kCPU));
    to.mul_(at::add(one, factors, scale * relative));
  }
  if (!absolute.defined()) return;
  at::Tensor error = random_factors(to) * absolute;
  to.add_(at::nan_to_num_(error, 0, 0, 0), scale);
}

// Adds noise in parts, for which there are enough prepared factors, and because tensors may fill a
// large part of a GPU's memory.
void add_noise(at::Tensor& to, const operator_error& error) {
  if (current->noise.amplitude == 0 || to.numel() == 0) return;
  const std::int64_t max_elements = max_prepared_factors(to.device());
  if (to.numel() <= max_elements || to.dim() == 0 || to.size(0) == 1)
    return add_noise_at_once(to, error.relative, error.absolute);
  const std::int64_t rows =
      std::max<std::int64_t>(1, max_elements / std::max<std::int64_t>(1, to.numel() / to.size(0)));
  const bool has_rows = error.absolute.defined() && error.absolute.dim() > 0;
  const at::Tensor absolute = has_rows ? error.absolute.expand_as(to) : error.absolute;
  for (std::int64_t row = 0; row < to.size(0); row += rows) {
    const std::int64_t count = std::min(rows, to.size(0) - row);
    at::Tensor part = to.narrow(0, row, count);
    add_noise_at_once(part, error.relative, has_rows ? absolute.narrow(0, row, count) : absolute);
  }
}

bool is_rounded(const IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         (value.toTensor().is_floating_point() || value.toTensor().is_complex());
}

// Calls the operator itself, without noise in what it calls.
void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_noise(the_key);
  op.redispatchBoxed(keys, &stack);
}

// Returns true if terms of a sum are equal, or differ by less than the sum is rounded.
bool has_equal_terms(rounding_kind kind, const std::vector<IValue>& inputs) {
  const bool adds_exponentials =
      kind == rounding_kind::softmax || kind == rounding_kind::log_softmax ||
      (kind == rounding_kind::sum && formula_of(inputs[0]) == formula::exp);
  return current->noise.is_sparse || (current->noise.has_small_inputs && adds_exponentials);
}

IValue& result(Stack& stack, std::size_t results, std::size_t i) {
  return stack[stack.size() - results + i];
}

// Returns the result of a discontinuous operator with one result, as its decision has it. `own`:
// the operator's own result.
at::Tensor settled(rounding_kind kind, const std::vector<IValue>& inputs, const at::Tensor& own) {
  if (kind == rounding_kind::decision) return decided(own);
  const at::Tensor x = inputs[0].isTensor() ? inputs[0].toTensor() : own;
  if (kind == rounding_kind::quotient) {
    const at::Tensor by = inputs.size() > 1 && inputs[1].isTensor() ? inputs[1].toTensor()
                          : inputs.size() > 1 ? at::full({}, inputs[1].toScalar(), x.options())
                                              : at::ones({}, x.options());
    return x - decided(((x - own) / by).round_()) * by;
  }
  if (kind == rounding_kind::cutoff)
    return at::where(decided(own == x), x,
                     inputs.size() > 2 ? inputs[2].toScalar() : c10::Scalar(0));
  return own;
}

// Settles the results of a discontinuous operator, of which `inputs` are the arguments.
void settle(const c10::OperatorHandle& op, rounding_kind kind, const std::vector<IValue>& inputs,
            bool is_in_place, Stack& stack) {
  const std::size_t results = op.schema().returns().size();
  IValue& first = result(stack, results, 0);
  if (kind == rounding_kind::selection && results == 2) {
    const at::Tensor own = result(stack, 2, 1).toTensor();
    const at::Tensor indices = decided(own);
    if (indices.is_same(own)) return;
    result(stack, 2, 1) = indices;
    first = selected(op, inputs, first.toTensor(), indices);
  } else if (first.isTensor()) {
    at::Tensor own = first.toTensor();
    const at::Tensor result = settled(kind, inputs, own);
    if (!is_in_place) {
      first = result;
    } else if (!result.is_same(own)) {
      own.copy_(result);
    }
  }
}

bool is_discontinuous(rounding_kind kind) {
  return kind == rounding_kind::decision || kind == rounding_kind::selection ||
         kind == rounding_kind::quotient || kind == rounding_kind::cutoff;
}

bool has_rounded_argument(const std::vector<IValue>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), is_rounded);
}

// Calls an operator and adds its errors to its results.
void call_with_errors(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack,
                      const operator_rounding& rule) {
  const auto& schema = op.schema();
  std::vector<IValue> inputs(stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size()),
                             stack.end());
  const auto writes = [](const auto& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  };
  const bool is_in_place = !schema.arguments().empty() && writes(schema.arguments()[0]);
  const bool needs_inputs =
      rule.kind != rounding_kind::exact && rule.kind != rounding_kind::relative;
  if (is_in_place && needs_inputs && is_rounded(inputs[0]))
    inputs[0] = inputs[0].toTensor().clone();
  const bool is_noisy = current->noise.amplitude != 0;
  const std::size_t results = schema.returns().size();
  const auto repeat = [&](std::vector<IValue> arguments) {
    call(op, keys, arguments);
    return arguments;
  };
  if (rule.kind == rounding_kind::backward_stable && is_noisy) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_rounded(inputs[i]))
        stack[stack.size() - inputs.size() + i] =
            perturbed(inputs[i].toTensor(), current->noise.amplitude);
    }
  }
  call(op, keys, stack);
  if (is_discontinuous(rule.kind)) {
    if (has_rounded_argument(inputs)) settle(op, rule.kind, inputs, is_in_place, stack);
    return;
  }
  if (!is_noisy || rule.kind == rounding_kind::exact || rule.kind == rounding_kind::backward_stable)
    return;
  for (std::size_t i = 0; i < results; ++i) {
    IValue& value = result(stack, results, i);
    const auto* alias = schema.returns()[i].alias_info();
    const bool is_view = alias != nullptr && !alias->isWrite();
    if (!is_rounded(value) || is_view) continue;
    at::Tensor y = value.toTensor();
    // Only first results have an error of their operator's kind; others are by-products.
    const operator_rounding by_product{};
    const operator_error error =
        error_of({schema.name(), i == 0 ? rule : by_product, inputs, y, repeat, current->noise.tf32,
                  has_equal_terms(rule.kind, inputs), current->counts_zeros,
                  i == 0 && is_one_over_one_plus_exp(schema.name(), inputs), expanded_magnitude});
    add_noise(y, error);
    note_formula(schema.name(), inputs, y);
    note_polynomial(y, error.magnitude);
  }
}

bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

void on_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const c10::DispatchKeySet below =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, the_key);
  if (current == nullptr) return call(op, below, *stack);
  const std::string_view name = std::string_view(op.schema().name()).substr(sizeof("aten::") - 1);
  const operator_rounding& rule = rounding_of(name);
  // Operators inside of a formula or a composite operator come here again.
  if (current->noise.amplitude != 0) {
    // Differences from a mean are not zero where the elements are.
    const bool counted = std::exchange(current->counts_zeros, false);
    const bool is_done = compute_by_formula(rule.kind, op, *stack);
    current->counts_zeros = counted;
    if (is_done) return;
  }
  if (is_composite(op)) {
    const without_fused_recurrence step_by_step(rule.kind == rounding_kind::recurrent &&
                                                current->noise.amplitude != 0);
    return op.redispatchBoxed(below, stack);
  }
  const c10::impl::ExcludeDispatchKeyGuard no_noise(the_key);
  call_with_errors(op, below, *stack, rule);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_operator>());
}

}  // namespace

void prepare_rounding_noise() { seed_factors(1); }

void with_rounding_noise(const rounding_noise& noise, decision_use use, decision_log& decisions,
                         const std::function<void()>& run) {
  noisy_run mine{noise, use, &decisions, 0, noise.is_sparse, {}, {}};
  struct scope {
    explicit scope(noisy_run& now) : before(std::exchange(current, &now)) {}
    ~scope() { current = before; }
    noisy_run* before;
  } const in_force(mine);
  const c10::impl::IncludeDispatchKeyGuard noisy(the_key);
  seed_factors(noise.seed);
  run();
}

}  // namespace hone
