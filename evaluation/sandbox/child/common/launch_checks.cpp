#include "evaluation/sandbox/child/common/launch_checks.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>

namespace hone {
namespace {

constexpr std::array<std::int64_t, 3> max_grid = {2147483647, 65535, 65535};
constexpr std::array<std::int64_t, 3> max_block = {1024, 1024, 64};
constexpr std::uint64_t max_block_threads = 1024;

using kinds = parameter_facts::kinds;

[[noreturn]] void refuse_launch(const std::string& message) {
  throw program_error(Outcome::LAUNCH_ERROR, message);
}

launch_size checked_size(const std::vector<std::int64_t>& values,
                         const std::array<std::int64_t, 3>& limits, std::int64_t least,
                         const std::string& what) {
  if (values.empty() || values.size() > 3)
    refuse_launch(what + " has " + std::to_string(values.size()) +
                  " dimensions, expected one to three");
  std::array<unsigned, 3> size = {1, 1, 1};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < least || values[i] > limits[i]) {
      refuse_launch(what + " is " + std::to_string(values[i]) + " in dimension " +
                    std::to_string(i) + ", expected " + std::to_string(least) + " to " +
                    std::to_string(limits[i]));
    }
    size[i] = static_cast<unsigned>(values[i]);
  }
  return {size[0], size[1], size[2]};
}

const char* name_of(kinds kind) {
  switch (kind) {
    case kinds::pointer:
      return "a pointer";
    case kinds::integer:
      return "an integer";
    case kinds::floating:
      return "a floating-point number";
    case kinds::boolean:
      return "a bool";
    case kinds::other:
      return "a struct";
  }
  return "something else";
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);  // little endian
  return bits;
}

std::uint64_t marshal(const c10::IValue& value, const parameter_facts& parameter, bool on_gpu,
                      const std::string& place) {
  const auto mismatch = [&](const char* given) {
    refuse_launch(place + " is " + given + ", the kernel's parameter is " +
                  name_of(parameter.kind) + " of " + std::to_string(parameter.bytes) + " bytes");
  };
  const bool is_word = parameter.bytes == 4 || parameter.bytes == 8;
  if (value.isTensor()) {
    if (parameter.kind != kinds::pointer || parameter.bytes != sizeof(void*)) mismatch("a Tensor");
    const at::Tensor& tensor = value.toTensor();
    if (on_gpu && tensor.defined() && !tensor.is_cuda())
      refuse_launch(place + " is a Tensor in the host's memory");
    return bits_of(tensor.defined() ? tensor.data_ptr() : nullptr);
  }
  if (value.isBool()) {
    if (parameter.kind != kinds::boolean || parameter.bytes != 1) mismatch("a bool");
    return value.toBool() ? 1 : 0;
  }
  if (value.isInt()) {
    if (parameter.kind != kinds::integer || !is_word) mismatch("an int");
    const std::int64_t number = value.toInt();
    if (parameter.bytes == 4 && (number < std::numeric_limits<std::int32_t>::min() ||
                                 number > std::numeric_limits<std::uint32_t>::max())) {
      refuse_launch(place + " is " + std::to_string(number) + ", which does not fit into 4 bytes");
    }
    return bits_of(number);
  }
  if (value.isDouble()) {
    if (parameter.kind != kinds::floating || !is_word) mismatch("a float");
    return parameter.bytes == 8 ? bits_of(value.toDouble())
                                : bits_of(static_cast<float>(value.toDouble()));
  }
  mismatch("neither a Tensor nor a number");
  return 0;
}

}  // namespace

launch_size checked_grid(const std::string& kernel, const std::vector<std::int64_t>& grid) {
  return checked_size(grid, max_grid, 0, kernel + ": the grid");
}

launch_size checked_block(const std::string& kernel, const std::vector<std::int64_t>& block) {
  const launch_size size = checked_size(block, max_block, 1, kernel + ": the block");
  if (size.count() > max_block_threads)
    refuse_launch(kernel + ": the block has more than 1024 threads");
  return size;
}

void check_shared_bytes(const std::string& kernel, std::int64_t bytes) {
  if (bytes < 0 || bytes > max_shared_bytes)
    refuse_launch(kernel + ": " + std::to_string(bytes) +
                  " bytes of dynamic shared memory, expected 0 to " +
                  std::to_string(max_shared_bytes));
}

marshaled_arguments::marshaled_arguments(const std::string& kernel,
                                         const std::vector<c10::IValue>& arguments,
                                         const std::vector<parameter_facts>& parameters,
                                         bool on_gpu) {
  if (arguments.size() != parameters.size()) {
    refuse_launch(kernel + ": " + std::to_string(arguments.size()) + " arguments, the kernel has " +
                  std::to_string(parameters.size()) + " parameters");
  }
  values_.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    values_.push_back(marshal(arguments[i], parameters[i], on_gpu,
                              kernel + ": argument " + std::to_string(i + 1)));
  for (std::uint64_t& value : values_) addresses_.push_back(&value);
}

}  // namespace hone
