#include "evaluation/sandbox/child/common/random_factors.hpp"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <random>

namespace hone {
namespace {

// Half of the prepared factors, so that slices of this length have many places.
constexpr std::int64_t max_slice_on_cpu = std::int64_t{1} << 19;
constexpr std::int64_t max_slice_on_gpu = std::int64_t{1} << 23;
std::mt19937_64 places;

at::Tensor& prepared_factors(at::Device on) {
  static at::Tensor on_cpu;
  static at::Tensor on_gpu;
  return on.is_cpu() ? on_cpu : on_gpu;
}

at::Tensor fresh_factors(at::IntArrayRef sizes, at::ScalarType type, at::Device on) {
  at::Tensor factors = at::empty(sizes, at::TensorOptions(type).device(on)).uniform_(-1, 1);
  return factors.add_(factors.sign(), 0.5);
}

}  // namespace

void make_factors(at::Device on) {
  at::Tensor& made = prepared_factors(on);
  if (!made.defined()) made = fresh_factors({2 * max_prepared_factors(on)}, at::kFloat, on);
}

void seed_factors(std::uint64_t seed) {
  places.seed(seed);
  const auto reseed = [seed](const at::Generator& generator) {
    auto copy = generator;
    const std::lock_guard<std::mutex> lock(copy.mutex());
    copy.set_current_seed(seed);
  };
  reseed(at::detail::getDefaultCPUGenerator());
  if (at::getNumGPUs() > 0) reseed(at::globalContext().defaultGenerator(at::Device(at::kCUDA, 0)));
}

at::Tensor random_factors(const at::Tensor& like) {
  const at::ScalarType type = c10::toRealValueType(like.scalar_type());
  const at::Tensor& made = prepared_factors(like.device());
  const std::int64_t n = like.numel();
  if (!made.defined() || n > max_prepared_factors(like.device()))
    return fresh_factors(like.sizes(), type, like.device());
  const auto place =
      static_cast<std::int64_t>(places() % static_cast<std::uint64_t>(made.numel() - n + 1));
  return made.narrow(0, place, n).view(like.sizes()).to(type);
}

std::int64_t max_prepared_factors(at::Device on) {
  return on.is_cpu() ? max_slice_on_cpu : max_slice_on_gpu;
}

}  // namespace hone
