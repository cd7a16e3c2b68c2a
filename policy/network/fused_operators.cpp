#include "policy/network/fused_operators.hpp"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "cuda/kernel_module.hpp"
#include "embedded/fused_kernels.hpp"
#include "embedded/policy_elements.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

// How the kernels of norms may divide rows.
struct norm_layout {
  std::int64_t team;   // threads that share a row
  std::int64_t parts;  // of eight elements that one of them holds at most
  constexpr std::int64_t widest() const { return team * parts * 8; }
};
constexpr std::array<norm_layout, 4> norm_layouts = {{{32, 3}, {32, 4}, {128, 2}, {128, 4}}};
static_assert(norm_layouts.back().widest() == widest_norm);

enum kernel : std::size_t {
  rotate_kernel,
  split_kernel,
  split_backward_kernel,
  gated_kernel,
  gated_backward_kernel,
  first_norm_kernel,  // those of norm_layouts, forwards and backwards
  read_logits_kernel = first_norm_kernel + 2 * norm_layouts.size(),
  grade_logits_kernel,
  adamw_kernel
};

// The layout of fused_kernels.cuh.
struct head_layout {
  void* q;
  void* k;
  void* v;
  int heads;
  int kv_heads;
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
      module = new kernel_module(like.device().index(), fused_kernel_source(),
                                 {std::string("ELEMENT=") + element_of(like.scalar_type())},
                                 fused_kernel_names());
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

struct split_function : torch::autograd::Function<split_function> {
  static tensor_list forward(AutogradContext* context, const at::Tensor& qkv,
                             const at::Tensor& turns, const at::Tensor& positions,
                             std::int64_t heads, std::int64_t kv_heads) {
    context->save_for_backward({turns, positions});
    const std::int64_t rows = qkv.size(0);
    const std::int64_t width = qkv.size(1) / (heads + 2 * kv_heads);
    at::Tensor q = at::empty({rows, heads, width}, qkv.options());
    at::Tensor k = at::empty({rows, kv_heads, width}, qkv.options());
    at::Tensor v = at::empty_like(k);
    launch(split_kernel, qkv, turns, positions, q, k, v);
    return {q, k, v};
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& of_outputs) {
    const auto saved = context->get_saved_variables();
    const at::Tensor q = of_outputs[0].contiguous();
    const at::Tensor k = of_outputs[1].contiguous();
    const at::Tensor v = of_outputs[2].contiguous();
    at::Tensor qkv = at::empty({q.size(0), (q.size(1) + 2 * k.size(1)) * q.size(2)}, q.options());
    launch(split_backward_kernel, qkv, saved[0], saved[1], q, k, v);
    return {qkv, {}, {}, {}, {}};
  }

 private:
  static void launch(kernel which, const at::Tensor& qkv, const at::Tensor& turns,
                     const at::Tensor& positions, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v) {
    const head_layout apart = {q.data_ptr(), k.data_ptr(), v.data_ptr(),
                               static_cast<int>(q.size(1)), static_cast<int>(k.size(1))};
    kernels_for(qkv).launch(which, current_stream(qkv), one_thread_each(qkv.numel() / 16),
                            qkv.data_ptr(), turns.data_ptr(), positions.data_ptr(), apart,
                            static_cast<long long>(qkv.size(0)), static_cast<int>(q.size(2) / 2));
  }
};

struct gate_function : torch::autograd::Function<gate_function> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    at::Tensor to = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    kernels_for(to).launch(gated_kernel, current_stream(to), one_thread_each(to.numel() / 8),
                           gate_up.data_ptr(), to.data_ptr(), static_cast<long long>(to.size(0)),
                           static_cast<int>(to.size(1)));
    return to;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& of_output) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const at::Tensor from = of_output[0].contiguous();
    at::Tensor to = at::empty_like(gate_up);
    kernels_for(to).launch(gated_backward_kernel, current_stream(to),
                           one_thread_each(from.numel() / 8), from.data_ptr(), gate_up.data_ptr(),
                           to.data_ptr(), static_cast<long long>(from.size(0)),
                           static_cast<int>(from.size(1)));
    return {to};
  }
};

// How the kernels of norms divide rows of a width, which is widest_norm at most.
class norm_teams {
 public:
  explicit norm_teams(std::int64_t width) {
    while (norm_layouts.at(chosen_).widest() < width) ++chosen_;
  }
  // Teams of a block.
  std::int64_t in_block() const { return norm_threads / norm_layouts[chosen_].team; }
  launch_shape blocks(std::int64_t count) const {
    return {static_cast<unsigned>(count), 1, norm_threads, 1};
  }
  std::size_t forwards() const { return first_norm_kernel + 2 * chosen_; }
  std::size_t backwards() const { return forwards() + 1; }
  static std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const norm_layout& one : norm_layouts) {
      const std::string of =
          "<" + std::to_string(one.team) + ", " + std::to_string(one.parts) + ">";
      names.insert(names.end(), {"add_and_norm" + of, "add_and_norm_backward" + of});
    }
    return names;
  }

 private:
  static constexpr unsigned norm_threads = 128;  // as in fused_kernels.cuh
  std::size_t chosen_ = 0;
};

struct norm_function : torch::autograd::Function<norm_function> {
  static tensor_list forward(AutogradContext* context, const at::Tensor& x,
                             const at::Tensor& change, const at::Tensor& weight, double epsilon) {
    const std::int64_t rows = x.size(0);
    const norm_teams teams(x.size(1));
    at::Tensor y = at::empty_like(x);
    at::Tensor h = at::empty_like(x);
    const at::Tensor inverses = at::empty({rows}, x.options().dtype(at::kFloat));
    kernels_for(x).launch(teams.forwards(), current_stream(x),
                          teams.blocks((rows + teams.in_block() - 1) / teams.in_block()),
                          x.data_ptr(), change.data_ptr(), weight.data_ptr(), y.data_ptr(),
                          h.data_ptr(), inverses.data_ptr(), static_cast<long long>(rows),
                          static_cast<int>(x.size(1)), static_cast<float>(epsilon));
    context->save_for_backward({y, weight, inverses});
    context->set_materialize_grads(false);
    return {y, h};
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& of_outputs) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& y = saved[0];
    const std::int64_t rows = y.size(0);
    const norm_teams teams(y.size(1));
    const at::Tensor of_y = of_outputs[0].defined() ? of_outputs[0].contiguous() : at::Tensor();
    const at::Tensor of_h =
        of_outputs[1].defined() ? of_outputs[1].contiguous() : at::zeros_like(y);
    at::Tensor of_x = at::empty_like(y);
    constexpr std::int64_t max_blocks = 792;  // six for each multiprocessor of an H100
    const std::int64_t blocks =
        std::min((rows + teams.in_block() - 1) / teams.in_block(), max_blocks);
    const at::Tensor of_weight = at::empty({blocks, y.size(1)}, y.options().dtype(at::kFloat));
    kernels_for(y).launch(teams.backwards(), current_stream(y), teams.blocks(blocks),
                          of_y.defined() ? of_y.data_ptr() : static_cast<void*>(nullptr),
                          of_h.data_ptr(), y.data_ptr(), saved[1].data_ptr(), saved[2].data_ptr(),
                          of_x.data_ptr(), of_weight.data_ptr(), static_cast<long long>(rows),
                          static_cast<int>(y.size(1)));
    return {of_x, of_x, of_weight.sum(0).to(y.scalar_type()), {}};
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
          targets.data_ptr(), static_cast<int>(logits.size(1)), scale, log_probabilities.data_ptr(),
          entropies.data_ptr(), numbers.data_ptr());
    context->save_for_backward({logits, targets, numbers});
    context->set_materialize_grads(false);
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

const std::string& fused_kernel_source() {
  static const std::string source =
      std::string(embedded::policy_elements) + std::string(embedded::fused_kernels);
  return source;
}

const std::vector<std::string>& fused_kernel_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"rotate", "split_and_rotate<false>", "split_and_rotate<true>",
                                    "gated", "gated_backward"};
    const std::vector<std::string> of_norms = norm_teams::kernel_names();
    all.insert(all.end(), of_norms.begin(), of_norms.end());
    all.insert(all.end(), {"read_logits", "grade_logits", "adamw"});
    return all;
  }();
  return names;
}

bool can_fuse(const at::Tensor& like) {
  if (!like.is_cuda()) return false;
  const cuda_driver& driver = cuda_driver::get();
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, like.device().index()), "finding a GPU");
  return driver.attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 8;
}

at::Tensor fused_rotate(const at::Tensor& x, const at::Tensor& turns, const at::Tensor& positions) {
  return rotate_function::apply(x, turns, positions);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_split(const at::Tensor& qkv,
                                                           const at::Tensor& turns,
                                                           const at::Tensor& positions,
                                                           std::int64_t heads,
                                                           std::int64_t kv_heads) {
  const tensor_list apart = split_function::apply(qkv, turns, positions, heads, kv_heads);
  return {apart[0], apart[1], apart[2]};
}

at::Tensor fused_gate(const at::Tensor& gate_up) { return gate_function::apply(gate_up); }

std::pair<at::Tensor, at::Tensor> fused_add_and_norm(const at::Tensor& x, const at::Tensor& change,
                                                     const at::Tensor& weight, double epsilon) {
  const tensor_list both = norm_function::apply(x, change, weight, epsilon);
  return {both[0], both[1]};
}

std::pair<at::Tensor, at::Tensor> fused_token_numbers(const at::Tensor& logits,
                                                      const at::Tensor& targets,
                                                      double temperature) {
  const tensor_list both = token_numbers_function::apply(logits, targets, temperature);
  return {both[0], both[1]};
}

void fused_adamw(const at::Tensor& gradient, at::Tensor& exact, at::Tensor& weight,
                 at::Tensor& mean, at::Tensor& square, const at::Tensor& norm,
                 const adamw_numbers& numbers) {
  const c10::DeviceGuard guard(gradient.device());
  const at::Tensor from = gradient.contiguous();
  const auto f = [](double x) { return static_cast<float>(x); };
  void* const copy = weight.data_ptr() == exact.data_ptr() ? nullptr : weight.data_ptr();
  kernels_for(gradient).launch(
      adamw_kernel, current_stream(gradient), one_thread_each(from.numel()), from.data_ptr(),
      exact.data_ptr(), copy, mean.data_ptr(), square.data_ptr(),
      static_cast<long long>(from.numel()), norm.data_ptr(), f(numbers.max_norm), f(numbers.beta1),
      f(numbers.beta2), f(numbers.correction1), f(numbers.correction2), f(numbers.epsilon),
      f(numbers.decay), f(numbers.rate));
}

}  // namespace hone
