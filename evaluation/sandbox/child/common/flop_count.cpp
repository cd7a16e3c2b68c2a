#include "evaluation/sandbox/child/common/flop_count.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

namespace hone {
namespace {

thread_local std::uint64_t counted = 0;

using arguments = c10::ArrayRef<const c10::IValue>;

at::Tensor tensor(arguments all, std::size_t i) {
  return i < all.size() && all[i].isTensor() ? all[i].toTensor() : at::Tensor();
}

// Returns the operations of the product of the last two dimensions, for all batches.
std::uint64_t of_product(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined() || a.dim() == 0 || b.dim() == 0) return 0;
  return 2 * static_cast<std::uint64_t>(a.numel()) *
         static_cast<std::uint64_t>(b.dim() == 1 ? 1 : b.size(-1));
}

// Returns the operations of aten::convolution(input, weight, bias, stride, padding, dilation,
// transposed, ...). Every weight of a channel's filter is multiplied at every place of the output,
// or of the input if the convolution is transposed.
std::uint64_t of_convolution(arguments all) {
  const at::Tensor input = tensor(all, 0);
  const at::Tensor weight = tensor(all, 1);
  if (!input.defined() || !weight.defined() || weight.dim() < 3 || weight.size(0) == 0 ||
      input.dim() != weight.dim() || all.size() < 7)
    return 0;
  const auto filter = static_cast<std::uint64_t>(weight.numel() / weight.size(0));
  if (all[6].toBool()) return 2 * static_cast<std::uint64_t>(input.numel()) * filter;
  const auto stride = all[3].toIntVector();
  const auto padding = all[4].toIntVector();
  const auto dilation = all[5].toIntVector();
  const auto of = [](const std::vector<std::int64_t>& values, std::size_t d) {
    return values[values.size() == 1 ? 0 : d];
  };
  std::uint64_t places = static_cast<std::uint64_t>(input.size(0) * weight.size(0));
  for (std::int64_t d = 2; d < input.dim(); ++d) {
    const auto i = static_cast<std::size_t>(d - 2);
    const std::int64_t extent =
        (input.size(d) + 2 * of(padding, i) - of(dilation, i) * (weight.size(d) - 1) - 1) /
            of(stride, i) +
        1;
    places *= static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 0));
  }
  return 2 * places * filter;
}

// Returns the operations of attention as one operator: queries by keys, then weights by values.
std::uint64_t of_attention(arguments all) {
  const at::Tensor q = tensor(all, 0);
  const at::Tensor k = tensor(all, 1);
  const at::Tensor v = tensor(all, 2);
  if (!q.defined() || !k.defined() || !v.defined() || q.dim() < 2 || k.dim() < 2 || v.dim() < 2 ||
      q.size(-1) == 0)
    return 0;
  const std::uint64_t rows =
      static_cast<std::uint64_t>(q.numel() / q.size(-1)) * static_cast<std::uint64_t>(k.size(-2));
  return 2 * rows * static_cast<std::uint64_t>(q.size(-1) + v.size(-1));
}

// Counts only the operators that do such work themselves. Composite operators, such as matmul,
// linear and einsum, are counted through the operators that they call.
std::uint64_t flops_of(std::string_view name, arguments all) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::dot")
    return of_product(tensor(all, 0), tensor(all, 1));
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::addbmm" ||
      name == "aten::addmv" || name == "aten::addmv_" || name == "aten::_addmm_activation") {
    return of_product(tensor(all, 1), tensor(all, 2));
  }
  if (name == "aten::convolution") return of_convolution(all);
  if (name.starts_with("aten::_scaled_dot_product_") &&
      name != "aten::_scaled_dot_product_attention_math")
    return of_attention(all);
  return 0;
}

std::unique_ptr<at::ObserverContext> look(const at::RecordFunction& call) {
  if (call.num_inputs() > 0) counted += flops_of(call.name(), call.inputs());
  return nullptr;
}

}  // namespace

std::uint64_t count_flops(const std::function<void()>& run) {
  counted = 0;
  struct observer {
    at::CallbackHandle handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(look).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    ~observer() { at::removeCallback(handle); }
  } const looking;
  run();
  return counted;
}

}  // namespace hone
