#include "policy/fused_operators.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>
#include <mutex>

#include "cuda/kernel_module.hpp"
#include "embedded/fused_kernels.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

enum kernel : std::size_t {
  rotate_kernel,
  gated_kernel,
  gated_backward_kernel,
  read_logits_kernel,
  grade_logits_kernel,
  adamw_kernel
};

const char* element_of(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return "__nv_bfloat16";
    case at::kHalf:
      return "__half";
    default:
      return "float";
  }
}

// Returns the kernels for a tensor's GPU and type. They are compiled on the first call, and never
// unloaded: the process may end after the driver.
const kernel_module& kernels_for(const at::Tensor& like) {
  static std::mutex lock;
  static auto& made = *new std::map<std::pair<int, at::ScalarType>, const kernel_module*>();
  const std::scoped_lock guard(lock);
  const kernel_module*& module = made[{like.device().index(), like.scalar_type()}];
  if (module == nullptr) {
    try {
      module = new kernel_module(
          like.device().index(), std::string(embedded::fused_kernels),
          {std::string("ELEMENT=") + element_of(like.scalar_type())},
          {"rotate", "gated", "gated_backward", "read_logits", "grade_logits", "adamw"});
    } catch (const std::runtime_error& e) {
      throw policy_error(e.what());
    }
  }
  return *module;
}

CUstream current_stream(const at::Tensor& like) {
  const c10::impl::VirtualGuardImpl device(like.device().type());
  return static_cast<CUstream>(device.getStream(like.device()).native_handle());
}

constexpr unsigned threads = 256;
constexpr unsigned row_threads = 512;  // as in fused_kernels.cuh

launch_shape one_thread_each(std::int64_t items) {
  return {static_cast<unsigned>((items + threads - 1) / threads), 1, threads, 1};
}

at::Tensor rotated(const at::Tensor& x, const at::Tensor& turns, const at::Tensor& positions,
                   float direction) {
  const at::Tensor from = x.contiguous();
  at::Tensor to = at::empty_like(from);
  const std::int64_t rows = from.size(0);
  const int heads = static_cast<int>(from.size(1));
  const int pairs = static_cast<int>(from.size(2) / 2);
  kernels_for(x).launch(rotate_kernel, current_stream(x), one_thread_each(from.numel() / 16),
                        from.data_ptr(), turns.data_ptr(), positions.data_ptr(), to.data_ptr(),
                        static_cast<long long>(rows), heads, pairs, direction);
  return to;
}

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct rotate_function : torch::autograd::Function<rotate_function> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& turns,
                            const at::Tensor& positions) {
    context->save_for_backward({turns, positions});
    return rotated(x, turns, positions, 1);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& of_output) {
    const auto saved = context->get_saved_variables();
    return {rotated(of_output[0], saved[0], saved[1], -1), {}, {}};
  }
};

struct gate_function : torch::autograd::Function<gate_function> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    at::Tensor to = at::empty_like(gate);
    const std::int64_t eights = gate.numel() / 8;
    kernels_for(gate).launch(gated_kernel, current_stream(gate), one_thread_each(eights),
                             gate.data_ptr(), up.data_ptr(), to.data_ptr(),
                             static_cast<long long>(eights));
    return to;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& of_output) {
    const auto saved = context->get_saved_variables();
    const at::Tensor from = of_output[0].contiguous();
    at::Tensor of_gate = at::empty_like(from);
    at::Tensor of_up = at::empty_like(from);
    const std::int64_t eights = from.numel() / 8;
    kernels_for(from).launch(gated_backward_kernel, current_stream(from), one_thread_each(eights),
                             from.data_ptr(), saved[0].data_ptr(), saved[1].data_ptr(),
                             of_gate.data_ptr(), of_up.data_ptr(), static_cast<long long>(eights));
    return {of_gate, of_up};
  }
};

struct token_numbers_function : torch::autograd::Function<token_numbers_function> {
  static tensor_list forward(AutogradContext* context, const at::Tensor& logits,
                             const at::Tensor& targets, double temperature) {
    const std::int64_t rows = logits.size(0);
    const auto fp32 = logits.options().dtype(at::kFloat);
    at::Tensor log_probabilities = at::empty({rows}, fp32);
    at::Tensor entropies = at::empty({rows}, fp32);
    const at::Tensor numbers = at::empty({rows, 4}, fp32);
    const auto scale = static_cast<float>(1 / temperature);
    if (rows > 0)
      kernels_for(logits).launch(
          read_logits_kernel, current_stream(logits),
          launch_shape{static_cast<unsigned>(rows), 1, row_threads, 1}, logits.data_ptr(),
          targets.data_ptr(), static_cast<int>(logits.size(1)), scale,
          log_probabilities.data_ptr(), entropies.data_ptr(), numbers.data_ptr());
    context->save_for_backward({logits, targets, numbers});
    context->saved_data["scale"] = static_cast<double>(scale);
    return {log_probabilities, entropies};
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& of_outputs) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradients = saved[0].detach();
    const at::Tensor of_log_probabilities =
        of_outputs[0].defined() ? of_outputs[0].contiguous()
                                : at::zeros({gradients.size(0)}, saved[2].options());
    const at::Tensor of_entropies =
        of_outputs[1].defined() ? of_outputs[1].contiguous() : at::Tensor();
    if (gradients.size(0) > 0)
      kernels_for(gradients).launch(
          grade_logits_kernel, current_stream(gradients),
          launch_shape{static_cast<unsigned>(gradients.size(0)), 1, row_threads, 1},
          gradients.data_ptr(), saved[1].data_ptr(), static_cast<int>(gradients.size(1)),
          static_cast<float>(context->saved_data["scale"].toDouble()),
          of_log_probabilities.data_ptr(),
          of_entropies.defined() ? of_entropies.data_ptr() : static_cast<void*>(nullptr),
          saved[2].data_ptr());
    return {gradients, {}, {}};
  }
};

}  // namespace

bool can_fuse(const at::Tensor& like) {
  if (!like.is_cuda()) return false;
  const cuda_driver& driver = cuda_driver::get();
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, like.device().index()), "finding a GPU");
  return driver.attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 8;
}

at::Tensor fused_rotate(const at::Tensor& x, const at::Tensor& turns,
                        const at::Tensor& positions) {
  return rotate_function::apply(x, turns, positions);
}

at::Tensor fused_gate(const at::Tensor& gate, const at::Tensor& up) {
  return gate_function::apply(gate, up);
}

std::pair<at::Tensor, at::Tensor> fused_token_numbers(const at::Tensor& logits,
                                                      const at::Tensor& targets,
                                                      double temperature) {
  const tensor_list both = token_numbers_function::apply(logits, targets, temperature);
  return {both[0], both[1]};
}

void fused_adamw(const at::Tensor& gradient, at::Tensor& exact, at::Tensor& weight,
                 at::Tensor& mean, at::Tensor& square, const adamw_numbers& numbers) {
  const at::Tensor from = gradient.contiguous();
  const auto f = [](double x) { return static_cast<float>(x); };
  void* const copy = weight.data_ptr() == exact.data_ptr() ? nullptr : weight.data_ptr();
  kernels_for(gradient).launch(
      adamw_kernel, current_stream(gradient), one_thread_each(from.numel()), from.data_ptr(),
      exact.data_ptr(), copy, mean.data_ptr(), square.data_ptr(),
      static_cast<long long>(from.numel()), f(numbers.shrink), f(numbers.beta1), f(numbers.beta2),
      f(numbers.correction1), f(numbers.correction2), f(numbers.epsilon), f(numbers.decay),
      f(numbers.rate));
}

}  // namespace hone
