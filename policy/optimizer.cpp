#include "policy/optimizer.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <numbers>

#include "policy/files.hpp"
#include "tasks/safetensors.hpp"

namespace hone {

double rate_schedule::at(std::int64_t step) const {
  if (step < warm_up) return peak * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  if (steps <= warm_up) return peak;
  const double progress =
      std::min(1.0, static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up));
  return peak *
         (final_share + (1 - final_share) * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
}

struct optimizer::state {
  decoder_weights* weights = nullptr;
  optimizer_options options;
  std::map<std::string, at::Tensor> mean;
  std::map<std::string, at::Tensor> square;
  std::int64_t steps = 0;
};

struct optimizer_moments::contents {
  std::map<std::string, at::Tensor> all;  // moments by their names in the file
  std::int64_t steps = 0;
};

optimizer::optimizer(decoder_weights& weights, const optimizer_options& options)
    : state_(std::make_unique<state>()) {
  state_->weights = &weights;
  state_->options = options;
  for (auto& [name, tensor] : weights.all()) {
    tensor = tensor.detach().clone();
    tensor.set_requires_grad(true);
    state_->mean[name] = at::zeros_like(tensor, at::kFloat);
    state_->square[name] = at::zeros_like(tensor, at::kFloat);
  }
}

optimizer::~optimizer() = default;

std::int64_t optimizer::steps() const { return state_->steps; }

double optimizer::step(double rate) {
  const c10::NoGradGuard no_gradients;
  const optimizer_options& o = state_->options;
  std::vector<at::Tensor> norms;
  for (const auto& [name, tensor] : state_->weights->all()) {
    if (tensor.grad().defined()) norms.push_back(tensor.grad().to(at::kFloat).norm());
  }
  const double norm = norms.empty() ? 0 : at::stack(norms).norm().item<double>();
  if (std::isfinite(norm)) {
    const double shrink = norm > o.max_gradient_norm ? o.max_gradient_norm / norm : 1.0;
    ++state_->steps;
    const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(state_->steps));
    const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(state_->steps));
    for (auto& [name, tensor] : state_->weights->all()) {
      if (!tensor.grad().defined()) continue;
      const at::Tensor gradient = tensor.grad().to(at::kFloat) * shrink;
      at::Tensor& mean = state_->mean.at(name);
      at::Tensor& square = state_->square.at(name);
      mean.mul_(o.beta1).add_(gradient, 1 - o.beta1);
      square.mul_(o.beta2).addcmul_(gradient, gradient, 1 - o.beta2);
      const at::Tensor denominator = (square / correction2).sqrt_().add_(o.epsilon);
      if (tensor.dim() > 1 && o.weight_decay > 0) tensor.mul_(1 - rate * o.weight_decay);
      tensor.addcdiv_(mean / correction1, denominator, -rate);
    }
  }
  for (auto& [name, tensor] : state_->weights->all()) tensor.mutable_grad() = at::Tensor();
  return norm;
}

optimizer_moments optimizer::moments() const {
  auto kept = std::make_shared<optimizer_moments::contents>();
  kept->steps = state_->steps;
  for (const auto& [name, tensor] : state_->mean)
    kept->all["mean." + name] = tensor.to(at::kCPU).contiguous();
  for (const auto& [name, tensor] : state_->square)
    kept->all["square." + name] = tensor.to(at::kCPU).contiguous();
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
  const std::string bytes = read_policy_file(path);
  std::size_t loaded = 0;
  try {
    for (const safetensor& stored : parse_safetensors(bytes)) {
      if (stored.name == "steps" && stored.bytes.size() == sizeof(std::int64_t)) {
        std::copy(stored.bytes.begin(), stored.bytes.end(),
                  reinterpret_cast<char*>(&state_->steps));
        continue;
      }
      const bool is_mean = stored.name.starts_with("mean.");
      auto& moments = is_mean ? state_->mean : state_->square;
      const auto found = moments.find(stored.name.substr(is_mean ? 5 : 7));
      if (found == moments.end() || found->second.sizes() != at::IntArrayRef(stored.shape) ||
          stored.dtype != "F32")
        throw std::runtime_error("tensor " + stored.name + " does not belong to this policy");
      at::Tensor tensor = at::empty(stored.shape, at::kFloat);
      std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<char*>(tensor.data_ptr()));
      found->second.copy_(tensor);
      ++loaded;
    }
  } catch (const std::runtime_error& e) {
    throw policy_error(path.string() + ": " + e.what());
  }
  if (loaded != 2 * state_->mean.size())
    throw policy_error(path.string() + ": holds " + std::to_string(loaded) + " moments, expected " +
                       std::to_string(2 * state_->mean.size()));
}

}  // namespace hone
