#include "evaluation/program/arena_plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hone {
namespace {

constexpr std::uint64_t max_elements = std::uint64_t{1} << 40U;
constexpr std::uint64_t page = 4096;
constexpr std::uint32_t max_outputs_per_call = 64;

// Returns the bytes from the first element to the end of the last, or nullopt if the sizes or
// strides are impossible.
std::optional<std::uint64_t> extent_bytes(const arena_output& out, std::size_t element_bytes) {
  std::uint64_t last = 0;
  for (std::uint32_t d = 0; d < out.dimensions; ++d) {
    if (out.sizes[d] < 0 || out.strides[d] < 0) return std::nullopt;
    if (out.sizes[d] == 0) return 0;
    std::uint64_t step = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(out.sizes[d] - 1),
                               static_cast<std::uint64_t>(out.strides[d]), &step) ||
        step > max_elements)
      return std::nullopt;
    last += step;
  }
  return (last + 1) * element_bytes;
}

// True if all elements, laid out densely, take at most `most` bytes. The sizes come from the
// process, and their product may overflow.
bool fits_densely(const std::vector<std::int64_t>& shape, std::size_t element_bytes,
                  std::uint64_t most) {
  std::uint64_t bytes = element_bytes;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return true;
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > most)
      return false;
  }
  return true;
}

// True if two elements may share an address: some stride is not larger than the distance that the
// smaller strides span.
bool overlaps_itself(const output_place& place) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, size
  for (std::size_t d = 0; d < place.strides.size(); ++d) {
    if (place.layout.shape[d] > 1) steps.emplace_back(place.strides[d], place.layout.shape[d]);
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t reach = 0;  // distance that the strides so far span
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

void add_guards(std::vector<arena_plan::guard>& all, const arena_region& around, std::uint64_t last,
                const char* damage) {
  all.push_back({{around.begin - guard_bytes, guard_bytes}, damage});
  const std::uint64_t end = std::min(last, arena_aligned(around.end()) + guard_bytes);
  if (end > around.end()) all.push_back({{around.end(), end - around.end()}, damage});
}

}  // namespace

arena_region arena_plan::place(std::uint64_t& at, std::uint64_t bytes) const {
  const arena_region placed{at, bytes};
  at += arena_aligned(bytes) + guard_bytes;
  if (at > size_)
    throw std::length_error("the inputs do not fit into the arena of " + std::to_string(size_) +
                            " bytes");
  return placed;
}

void arena_plan::arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                         const std::vector<tensor_layout>& parameters, std::size_t sets,
                         std::uint64_t begin, std::uint64_t size) {
  program_ = program;
  input_layouts_ = inputs;
  parameter_layouts_ = parameters;
  begin_ = begin;
  size_ = size;
  std::uint64_t at = begin + guard_bytes;
  parameters_.clear();
  for (const tensor_layout& layout : parameters) parameters_.push_back(place(at, layout.bytes()));
  inputs_.assign(sets, {});
  for (auto& set : inputs_) {
    for (const tensor_layout& layout : inputs) set.push_back(place(at, layout.bytes()));
  }
  end_ = (at + page - 1) / page * page;
}

program_result<std::uint32_t> arena_plan::outputs_per_call(const arena_head& head) {
  const std::uint32_t count = head.outputs_per_call;
  if (count == 0 || count > max_outputs_per_call)
    return failed(Outcome::CRASH, "the process did not describe its outputs");
  return count;
}

program_result<output_place> arena_plan::locate(const arena_head& head, std::size_t call,
                                                std::size_t output) const {
  const std::size_t index = call * head.outputs_per_call + output;
  if (index >= std::min(head.output_count, max_arena_outputs))
    return failed(Outcome::CRASH, "the process did not describe its outputs");
  const arena_output out = head.outputs[index];
  const std::string name = "output " + std::to_string(output);
  if (out.dtype > static_cast<std::uint32_t>(dtype::boolean) || out.dimensions > out.sizes.size()) {
    return failed(Outcome::WRONG_RESULT, name + " is of a type or layout that no task has");
  }
  output_place placed;
  placed.layout.type = static_cast<dtype>(out.dtype);
  placed.layout.shape.assign(out.sizes.begin(), out.sizes.begin() + out.dimensions);
  placed.strides.assign(out.strides.begin(), out.strides.begin() + out.dimensions);
  const auto bytes = extent_bytes(out, bytes_of(placed.layout.type));
  if (!bytes || !fits_densely(placed.layout.shape, bytes_of(placed.layout.type), size_)) {
    return failed(Outcome::WRONG_RESULT, name + " has an impossible shape");
  }
  placed.extent = {out.offset, *bytes};
  if (*bytes > 0 && out.offset != not_in_arena && out.offset % bytes_of(placed.layout.type) != 0)
    return failed(Outcome::WRONG_RESULT, name + " is not aligned to the size of its elements");
  if (*bytes > 0 && (out.offset < begin_ || out.offset > size_ || *bytes > size_ - out.offset))
    placed.extent.begin = not_in_arena;
  return placed;
}

std::set<output_alias> arena_plan::aliases(const arena_head& head, std::size_t call,
                                           std::span<const std::size_t> sets,
                                           std::uint64_t calls_begin) const {
  using with = output_alias::with;
  std::set<output_alias> shared;
  if (call >= sets.size()) throw std::out_of_range("the last run made no such call");
  const std::size_t count = std::min(head.outputs_per_call, max_outputs_per_call);
  const auto place_of = [&](std::size_t of_call, std::size_t output) {
    return locate(head, of_call, output).value_or(output_place{});
  };
  std::vector<arena_region> own;
  for (std::size_t o = 0; o < count; ++o) {
    const output_place place = place_of(call, o);
    own.push_back(place.extent);
    if (own[o].bytes == 0) continue;
    if (overlaps_itself(place)) shared.insert({o, with::itself, 0});
    if (own[o].begin == not_in_arena) {
      shared.insert({o, with::foreign, 0});
      continue;
    }
    // Memory between the arguments and the calls belongs to prepare().
    if (own[o].begin >= end_ && own[o].begin < calls_begin) shared.insert({o, with::foreign, 0});
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (own[o].overlaps(parameters_[p])) shared.insert({o, with::parameter, p});
    }
    for (std::size_t s = 0; s < inputs_.size(); ++s) {
      for (std::size_t i = 0; i < inputs_[s].size(); ++i) {
        if (own[o].overlaps(inputs_[s][i]))
          shared.insert({o, s == sets[call] ? with::input : with::foreign, i});
      }
    }
    for (std::size_t other = 0; other < o; ++other) {
      if (own[other].bytes > 0 && own[o].overlaps(own[other]))
        shared.insert({o, with::output, other});
    }
    for (std::size_t earlier = 0; earlier < call; ++earlier) {
      for (std::size_t other = 0; other < count; ++other) {
        const arena_region theirs = place_of(earlier, other).extent;
        if (theirs.bytes > 0 && own[o].overlaps(theirs))
          shared.insert({o, with::earlier_call, other});
      }
    }
  }
  return shared;
}

std::uint64_t arena_plan::row_major_outputs(const arena_head& head, std::size_t call) const {
  std::uint64_t outputs = 0;
  const auto count = std::min<std::size_t>(head.outputs_per_call, max_marked_outputs);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto place = locate(head, call, i);
    if (place && is_row_major(place->layout, place->strides)) outputs |= std::uint64_t{1} << i;
  }
  return outputs;
}

std::size_t arena_plan::output_bytes(const arena_head& head, std::size_t call) const {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < std::min(head.outputs_per_call, max_outputs_per_call); ++i) {
    if (const auto place = locate(head, call, i))
      bytes += std::min<std::size_t>(place->extent.bytes, place->layout.bytes());
  }
  return bytes;
}

std::vector<arena_plan::guard> arena_plan::guards() const {
  std::vector<guard> all;
  for (const arena_region& r : parameters_)
    add_guards(all, r, size_, "wrote outside of a parameter's buffer");
  for (const auto& set : inputs_) {
    for (const arena_region& r : set)
      add_guards(all, r, size_, "wrote outside of an input's buffer");
  }
  return all;
}

std::optional<std::vector<arena_plan::guard>> arena_plan::scratch_guards(
    const arena_head& head, std::uint64_t scratch_begin, std::uint64_t poisoned_end) const {
  std::vector<guard> all;
  const std::uint32_t count = std::min(head.allocation_count, max_arena_allocations);
  for (std::uint32_t i = 0; i < count; ++i) {
    const arena_region r{head.allocations[i].offset, head.allocations[i].bytes};
    if (r.begin < scratch_begin + guard_bytes || r.begin > size_ || r.bytes > size_ - r.begin)
      return std::nullopt;
    // If this run is the first to use this memory, the bytes after the last allocation are not
    // poisoned yet.
    add_guards(all, r, poisoned_end, "wrote outside of a buffer that it allocated");
  }
  return all;
}

}  // namespace hone
