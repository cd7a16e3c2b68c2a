#include "policy/training/optimizer.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "policy/files.hpp"
#include "policy/network/fused_operators.hpp"
#include "policy/network/weight_shards.hpp"
#include "tasks/safetensors.hpp"

namespace hone {

double rate_schedule::at(std::int64_t step, double share) const {
  if (step < warm_up) return peak * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  if (steps <= warm_up) return peak;
  const double of_updates =
      static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  const double progress = std::min(1.0, std::max(of_updates, share));
  return peak *
         (final_share + (1 - final_share) * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
}

// The tensors of the state lie with the owners of the weights.
struct optimizer::state {
  weight_shards weights;
  optimizer_options options;
  std::map<std::string, at::Tensor> mean;
  std::map<std::string, at::Tensor> square;
  std::map<std::string, at::Tensor> master;  // of the weights that are not float32
  std::int64_t steps = 0;

  state(const std::vector<decoder_weights*>& replicas, const optimizer_options& o)
      : weights(replicas), options(o) {}
  // Returns the tensors of a kind by the beginning of their names in the file.
  std::array<std::pair<const char*, std::map<std::string, at::Tensor>*>, 3> kinds() {
    return {{{"mean.", &mean}, {"square.", &square}, {"master.", &master}}};
  }
};

struct optimizer_moments::contents {
  std::map<std::string, at::Tensor> all;  // moments and master copies by their names in the file
  std::int64_t steps = 0;
};

namespace {

// Returns the norm [] (fp32) of all gradients together, on their device.
at::Tensor norm_of(const std::vector<at::Tensor>& gradients) {
  if (can_fuse(gradients.front()))
    return at::stack(at::_foreach_norm(gradients, 2, at::kFloat)).norm();
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients) norms.push_back(gradient.to(at::kFloat).norm());
  return at::stack(norms).norm();
}

// Returns the norm of all gradients for each owner, whose gradients are given, on the owner's
// device; an undefined tensor for an owner without gradients.
std::vector<at::Tensor> norms_of(const std::vector<std::vector<at::Tensor>>& gradients) {
  std::vector<at::Tensor> norms(gradients.size());
  std::vector<at::Tensor> gathered;
  for (std::size_t owner = 0; owner < gradients.size(); ++owner) {
    if (gradients[owner].empty()) continue;
    norms[owner] = norm_of(gradients[owner]);
    gathered.push_back(gathered.empty() ? norms[owner]
                                        : norms[owner].to(gathered.front().device()));
  }
  if (gathered.size() < 2) return norms;
  const at::Tensor whole = at::stack(gathered).norm();
  for (at::Tensor& norm : norms) {
    if (norm.defined()) norm = whole.to(norm.device());
  }
  return norms;
}

// What fused_adamw() does, by LibTorch's operators. `norm` must be finite.
void adamw(const at::Tensor& gradient, at::Tensor& exact, at::Tensor& mean, at::Tensor& square,
           double norm, const adamw_numbers& n) {
  const at::Tensor shrunk = gradient.to(at::kFloat) * (norm > n.max_norm ? n.max_norm / norm : 1.0);
  mean.mul_(n.beta1).add_(shrunk, 1 - n.beta1);
  square.mul_(n.beta2).addcmul_(shrunk, shrunk, 1 - n.beta2);
  const at::Tensor denominator = (square / n.correction2).sqrt_().add_(n.epsilon);
  if (n.decay < 1) exact.mul_(n.decay);
  exact.addcdiv_(mean / n.correction1, denominator, -n.rate);
}

// Copies the stored values into the tensor of this name.
void fill(std::map<std::string, at::Tensor>& tensors, const std::string& name,
          const safetensor& stored) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.sizes() != at::IntArrayRef(stored.shape) ||
      stored.dtype != "F32")
    throw std::runtime_error("tensor " + stored.name + " does not belong to this policy");
  const at::Tensor tensor = at::empty(stored.shape, at::kFloat);
  std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<char*>(tensor.data_ptr()));
  found->second.copy_(tensor);
}

}  // namespace

optimizer::optimizer(const std::vector<decoder_weights*>& replicas,
                     const optimizer_options& options)
    : state_(std::make_unique<state>(replicas, options)) {
  for (const auto& [name, first] : replicas.front()->all()) {
    const at::Tensor& tensor = state_->weights.owned(name);
    state_->mean[name] = at::zeros_like(tensor, at::kFloat);
    state_->square[name] = at::zeros_like(tensor, at::kFloat);
    if (tensor.scalar_type() != at::kFloat) state_->master[name] = tensor.detach().to(at::kFloat);
  }
}

optimizer::~optimizer() = default;

std::int64_t optimizer::steps() const { return state_->steps; }

void optimizer::restart() {
  for (auto* moments : {&state_->mean, &state_->square}) {
    for (auto& [name, tensor] : *moments) tensor.zero_();
  }
  state_->steps = 0;
}

double optimizer::step(double rate) {
  const c10::NoGradGuard no_gradients;
  const optimizer_options& o = state_->options;
  weight_shards& weights = state_->weights;
  weights.collect_gradients();
  std::vector<std::vector<at::Tensor>> gradients(weights.size());  // by owner
  for (const auto& [name, mean] : state_->mean) {
    const at::Tensor& gradient = weights.owned(name).grad();
    if (gradient.defined()) gradients[weights.owner_of(name)].push_back(gradient);
  }
  const std::vector<at::Tensor> norms = norms_of(gradients);
  const auto any = std::find_if(norms.begin(), norms.end(),
                                [](const at::Tensor& norm) { return norm.defined(); });
  if (any == norms.end()) {
    ++state_->steps;
    return 0;
  }
  const bool is_fused = can_fuse(*any);
  // On a GPU the update is queued before its norm is known here, so that the GPU need not wait.
  const double known = is_fused ? 0 : any->item<double>();
  ++state_->steps;
  adamw_numbers numbers;
  numbers.max_norm =
      o.max_gradient_norm > 0 ? o.max_gradient_norm : std::numeric_limits<double>::infinity();
  numbers.beta1 = o.beta1;
  numbers.beta2 = o.beta2;
  numbers.correction1 = 1 - std::pow(o.beta1, static_cast<double>(state_->steps));
  numbers.correction2 = 1 - std::pow(o.beta2, static_cast<double>(state_->steps));
  numbers.epsilon = o.epsilon;
  numbers.rate = rate;
  for (auto& [name, mean] : state_->mean) {
    at::Tensor& tensor = weights.owned(name);
    if (!tensor.grad().defined() || !std::isfinite(known)) continue;
    numbers.decay = tensor.dim() > 1 ? 1 - rate * o.weight_decay : 1.0;
    const auto master = state_->master.find(name);
    at::Tensor& exact = master != state_->master.end() ? master->second : tensor;
    at::Tensor& square = state_->square.at(name);
    if (is_fused) {
      fused_adamw(tensor.grad(), exact, tensor, mean, square, norms[weights.owner_of(name)],
                  numbers);
    } else {
      adamw(tensor.grad(), exact, mean, square, known, numbers);
      if (master != state_->master.end()) tensor.copy_(exact);
    }
  }
  weights.clear_gradients();
  weights.spread_weights();
  const double result = is_fused ? any->item<double>() : known;
  if (!std::isfinite(result)) --state_->steps;
  return result;
}

optimizer_moments optimizer::moments() const {
  auto kept = std::make_shared<optimizer_moments::contents>();
  kept->steps = state_->steps;
  for (const auto& [kind, tensors] : state_->kinds()) {
    for (const auto& [name, tensor] : *tensors)
      kept->all[kind + name] =
          tensor.to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true)
              .contiguous();
  }
  return optimizer_moments(std::move(kept));
}

void optimizer_moments::save(const std::filesystem::path& file) const {
  std::vector<safetensor> stored;
  for (const auto& [name, tensor] : contents_->all)
    stored.push_back({name,
                      "F32",
                      tensor.sizes().vec(),
                      {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()}});
  stored.push_back({"steps",
                    "I64",
                    {1},
                    {reinterpret_cast<const char*>(&contents_->steps), sizeof contents_->steps}});
  write_policy_tensors(file, stored);
}

void optimizer::load(const std::filesystem::path& path) {
  const mapped_file file(path);
  std::map<std::string_view, std::size_t> loaded;
  for (auto& [name, master] : state_->master) master.copy_(state_->weights.owned(name));
  try {
    for (const safetensor& stored : parse_safetensors(file.bytes())) {
      if (stored.name == "steps" && stored.bytes.size() == sizeof(std::int64_t)) {
        std::copy(stored.bytes.begin(), stored.bytes.end(),
                  reinterpret_cast<char*>(&state_->steps));
        continue;
      }
      for (const auto& [kind, tensors] : state_->kinds()) {
        if (!stored.name.starts_with(kind)) continue;
        fill(*tensors, stored.name.substr(std::string_view(kind).size()), stored);
        ++loaded[kind];
      }
    }
  } catch (const std::runtime_error& e) {
    throw policy_error(path.string() + ": " + e.what());
  }
  const std::size_t moments = loaded["mean."] + loaded["square."];
  if (moments != 2 * state_->mean.size())
    throw policy_error(path.string() + ": holds " + std::to_string(moments) +
                       " moments, expected " + std::to_string(2 * state_->mean.size()));
  const std::size_t masters = loaded["master."];
  if (masters != 0 && masters != state_->master.size())
    throw policy_error(path.string() + ": holds " + std::to_string(masters) +
                       " master copies, expected " + std::to_string(state_->master.size()));
}

}  // namespace hone
