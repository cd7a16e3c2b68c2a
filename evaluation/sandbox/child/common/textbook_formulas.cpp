#include "evaluation/sandbox/child/common/textbook_formulas.hpp"

#include <ATen/Context.h>

#include <algorithm>
#include <optional>

namespace hone {
namespace {

using c10::IValue;
using torch::jit::Stack;
using dimensions = std::vector<std::int64_t>;

// The arguments of a call that have not been popped yet.
class arguments {
 public:
  arguments(const c10::OperatorHandle& op, const Stack& stack)
      : op_(&op), first_(stack.data() + stack.size() - op.schema().arguments().size()) {}

  const IValue* find(std::string_view name) const {
    const auto& all = op_->schema().arguments();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name() == name) return first_ + i;
    }
    return nullptr;
  }
  at::Tensor tensor(std::string_view name) const {
    const IValue* value = find(name);
    return value != nullptr && value->isTensor() ? value->toTensor() : at::Tensor();
  }
  double number(std::string_view name, double otherwise) const {
    const IValue* value = find(name);
    return value != nullptr && value->isScalar() ? value->toScalar().toDouble() : otherwise;
  }
  bool flag(std::string_view name) const {
    const IValue* value = find(name);
    return value != nullptr && value->isBool() && value->toBool();
  }
  dimensions numbers(std::string_view name) const {
    const IValue* value = find(name);
    if (value != nullptr && value->isIntList()) return value->toIntVector();
    if (value != nullptr && value->isInt()) return {value->toInt()};
    return {};
  }

 private:
  const c10::OperatorHandle* op_;
  const IValue* first_;
};

void finish(const c10::OperatorHandle& op, Stack& stack, std::vector<IValue> results) {
  stack.resize(stack.size() - op.schema().arguments().size());
  for (IValue& result : results) stack.push_back(std::move(result));
}

// Short types are accumulated in float32, as the libraries do.
at::Tensor accumulating(const at::Tensor& x) {
  const bool is_short = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  return is_short ? x.to(at::kFloat) : x;
}

struct moments {
  at::Tensor mean;
  at::Tensor variance;
};

// Computes mean and variance in one pass: E[x^2] - E[x]^2.
moments moments_of(const at::Tensor& x, const dimensions& over) {
  const at::Tensor mean = at::mean(x, over, true);
  const at::Tensor squares = at::mean(at::mul(x, x), over, true);
  return {mean, at::clamp_min(at::sub(squares, at::mul(mean, mean)), 0)};
}

at::Tensor normalized(const at::Tensor& x, const moments& of, double epsilon) {
  return at::mul(at::sub(x, of.mean), at::rsqrt(at::add(of.variance, epsilon)));
}

at::Tensor scaled(at::Tensor y, const at::Tensor& weight, const at::Tensor& bias,
                  const dimensions& shape) {
  if (weight.defined()) y = at::mul(y, weight.to(y.scalar_type()).reshape(shape));
  if (bias.defined()) y = at::add(y, bias.to(y.scalar_type()).reshape(shape));
  return y;
}

void layer_norm(const c10::OperatorHandle& op, Stack& stack) {
  const arguments given(op, stack);
  const at::Tensor input = given.tensor("input");
  const at::Tensor x = accumulating(input);
  const dimensions shape = given.numbers("normalized_shape");
  dimensions over;
  for (std::size_t d = 0; d < shape.size(); ++d)
    over.push_back(x.dim() - static_cast<std::int64_t>(shape.size() - d));
  const double epsilon = given.number("eps", 1e-5);
  const moments of = moments_of(x, over);
  const at::Tensor y =
      scaled(normalized(x, of, epsilon), given.tensor("weight"), given.tensor("bias"), shape);
  finish(op, stack, {y.to(input.scalar_type()), of.mean, at::rsqrt(at::add(of.variance, epsilon))});
}

void group_norm(const c10::OperatorHandle& op, Stack& stack) {
  const arguments given(op, stack);
  const at::Tensor input = given.tensor("input");
  const auto batches = given.numbers("N").at(0);
  const auto groups = given.numbers("group").at(0);
  const auto channels = given.numbers("C").at(0);
  const at::Tensor x = accumulating(input).reshape({batches, groups, -1});
  const double epsilon = given.number("eps", 1e-5);
  const moments of = moments_of(x, {2});
  dimensions per_channel(static_cast<std::size_t>(input.dim()), 1);
  per_channel.at(1) = channels;
  const at::Tensor y = scaled(normalized(x, of, epsilon).reshape(input.sizes()),
                              given.tensor("weight"), given.tensor("bias"), per_channel);
  finish(op, stack,
         {y.to(input.scalar_type()), of.mean.reshape({batches, groups}),
          at::rsqrt(at::add(of.variance, epsilon)).reshape({batches, groups})});
}

// Leaves running statistics as they are: a reference computes its first call.
void batch_norm(const c10::OperatorHandle& op, Stack& stack) {
  const arguments given(op, stack);
  const at::Tensor input = given.tensor("input");
  const at::Tensor x = accumulating(input);
  dimensions per_channel(static_cast<std::size_t>(x.dim()), 1);
  per_channel.at(1) = x.size(1);
  moments of;
  if (given.flag("training") || !given.tensor("running_mean").defined()) {
    dimensions over;
    for (std::int64_t d = 0; d < x.dim(); ++d) {
      if (d != 1) over.push_back(d);
    }
    of = moments_of(x, over);
  } else {
    of = {given.tensor("running_mean").to(x.scalar_type()).reshape(per_channel),
          given.tensor("running_var").to(x.scalar_type()).reshape(per_channel)};
  }
  const at::Tensor y = scaled(normalized(x, of, given.number("eps", 1e-5)), given.tensor("weight"),
                              given.tensor("bias"), per_channel);
  finish(op, stack, {y.to(input.scalar_type())});
}

// Serves var, std, var_mean and std_mean with a correction.
bool variance(const c10::OperatorHandle& op, Stack& stack) {
  const arguments given(op, stack);
  if (given.find("correction") == nullptr) return false;  // composed of an overload that has it
  const at::Tensor input = given.tensor("self");
  const at::Tensor x = accumulating(input);
  dimensions over = given.numbers("dim");
  if (over.empty()) {
    for (std::int64_t d = 0; d < x.dim(); ++d) over.push_back(d);
  }
  double count = 1;
  for (const std::int64_t d : over) count *= static_cast<double>(x.dim() > 0 ? x.size(d) : 1);
  const double divisor = std::max(0.0, count - given.number("correction", 1));
  const moments of = moments_of(x, over);
  at::Tensor y = at::mul(of.variance, count / divisor);
  const std::string_view name = op.schema().name();
  if (name.find("std") != std::string_view::npos) y = at::sqrt(y);
  const auto shaped = [&](const at::Tensor& t) {
    return (given.flag("keepdim") ? t : t.squeeze(over)).to(input.scalar_type());
  };
  if (name.ends_with("_mean")) {
    finish(op, stack, {shaped(y), shaped(of.mean)});
  } else {
    finish(op, stack, {shaped(y)});
  }
  return true;
}

void attention(Stack& stack) {
  static const auto math = c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::_scaled_dot_product_attention_math", "");
  // (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) gains a dropout mask.
  stack.insert(stack.end() - 2, IValue());
  math.callBoxed(&stack);
  stack.pop_back();  // the weights
}

}  // namespace

bool compute_by_formula(rounding_kind kind, const c10::OperatorHandle& op,
                        torch::jit::Stack& stack) {
  switch (kind) {
    case rounding_kind::layer_norm:
      layer_norm(op, stack);
      return true;
    case rounding_kind::group_norm:
      group_norm(op, stack);
      return true;
    case rounding_kind::batch_norm:
      batch_norm(op, stack);
      return true;
    case rounding_kind::variance:
      return variance(op, stack);
    case rounding_kind::attention:
      attention(stack);
      return true;
    default:
      return false;
  }
}

without_fused_recurrence::without_fused_recurrence(bool is_needed)
    : is_needed_(is_needed),
      cudnn_(at::globalContext().userEnabledCuDNN()),
      mkldnn_(at::globalContext().userEnabledMkldnn()) {
  if (!is_needed_) return;
  at::globalContext().setUserEnabledCuDNN(false);
  at::globalContext().setUserEnabledMkldnn(false);
}

without_fused_recurrence::~without_fused_recurrence() {
  if (!is_needed_) return;
  at::globalContext().setUserEnabledCuDNN(cudnn_);
  at::globalContext().setUserEnabledMkldnn(mkldnn_);
}

at::Tensor selected(const c10::OperatorHandle& op, const std::vector<IValue>& inputs,
                    const at::Tensor& own, const at::Tensor& indices) {
  const auto& all = op.schema().arguments();
  const at::Tensor from = inputs.front().toTensor();
  if (op.schema().name().find("max_pool") != std::string::npos) {
    const std::int64_t places = op.schema().name().find("3d") != std::string::npos ? -3 : -2;
    return from.flatten(places).gather(-1, indices.flatten(places)).view(indices.sizes());
  }
  std::optional<std::int64_t> dimension;
  bool keeps = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name() == "dim" && inputs[i].isInt()) dimension = inputs[i].toInt();
    if (all[i].name() == "keepdim" && inputs[i].isBool()) keeps = inputs[i].toBool();
  }
  if (!dimension || from.dim() == 0) return own;
  return keeps ? from.gather(*dimension, indices)
               : from.gather(*dimension, indices.unsqueeze(*dimension)).squeeze(*dimension);
}

}  // namespace hone
