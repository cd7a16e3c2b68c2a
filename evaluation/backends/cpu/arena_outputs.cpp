#include "evaluation/backends/cpu/arena_outputs.hpp"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace hone {
namespace {

// Copies a strided tensor row-major.
template <class T>
void gather(const std::byte* from, const std::vector<std::int64_t>& shape,
            const std::vector<std::int64_t>& strides, std::byte* to) {
  const std::size_t n = static_cast<std::size_t>(element_count(shape));
  if (n == 0) return;
  std::vector<std::int64_t> index(shape.size(), 0);
  const std::size_t inner = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
  const std::int64_t step = shape.empty() ? 1 : strides.back();
  for (std::size_t done = 0; done < n; done += inner) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) offset += index[d] * strides[d];
    const std::byte* row = from + offset * static_cast<std::int64_t>(sizeof(T));
    if (step == 1) {
      std::memcpy(to, row, inner * sizeof(T));
      to += inner * sizeof(T);
    } else {
      for (std::size_t i = 0; i < inner; ++i, to += sizeof(T))
        std::memcpy(
            to, row + static_cast<std::int64_t>(i) * step * static_cast<std::int64_t>(sizeof(T)),
            sizeof(T));
    }
    for (std::size_t d = shape.size() - (shape.empty() ? 0 : 1); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

program_result<tensor_value> read_output(const arena& memory, const arena_plan& plan,
                                         std::size_t call, std::size_t output) {
  const auto place = plan.locate(memory.head(), call, output);
  if (!place) return failed(place.error());
  if (place->extent.bytes > 0 && place->extent.begin == not_in_arena) {
    return cheated("output_alias",
                   "output " + std::to_string(output) + " is not memory that the call allocated");
  }
  tensor_value value{place->layout, std::vector<std::byte>(place->layout.bytes())};
  if (place->extent.bytes == 0) return value;
  const std::byte* from = memory.at(place->extent.begin);
  const auto& shape = place->layout.shape;
  switch (bytes_of(place->layout.type)) {
    case 1:
      gather<std::uint8_t>(from, shape, place->strides, value.bytes.data());
      break;
    case 2:
      gather<std::uint16_t>(from, shape, place->strides, value.bytes.data());
      break;
    case 4:
      gather<std::uint32_t>(from, shape, place->strides, value.bytes.data());
      break;
    default:
      gather<std::uint64_t>(from, shape, place->strides, value.bytes.data());
      break;
  }
  return value;
}

}  // namespace

program_result<value_set> read_outputs(const arena& memory, const arena_plan& plan,
                                       std::size_t call) {
  const auto count = arena_plan::outputs_per_call(memory.head());
  if (!count) return failed(count.error());
  value_set values;
  for (std::uint32_t i = 0; i < *count; ++i) {
    auto value = read_output(memory, plan, call, i);
    if (!value) return failed(value.error());
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace hone
