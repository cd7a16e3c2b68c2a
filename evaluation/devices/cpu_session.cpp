#include "evaluation/devices/cpu_session.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace hone {
namespace {

constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t max_elements = std::uint64_t{1} << 40U;

program_failure failure_of(const session_failure& f) { return {f.outcome, "", f.message}; }

// Bytes from the first to behind the last element, or nothing where the numbers make no sense.
std::optional<std::uint64_t> extent_bytes(const arena_output& out, std::size_t element_bytes) {
  std::uint64_t last = 0;
  for (std::uint32_t d = 0; d < out.dimensions; ++d) {
    if (out.sizes[d] < 0 || out.strides[d] < 0) return std::nullopt;
    if (out.sizes[d] == 0) return 0;
    std::uint64_t step = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(out.sizes[d] - 1), static_cast<std::uint64_t>(out.strides[d]), &step) || step > max_elements) return std::nullopt;
    last += step;
  }
  return (last + 1) * element_bytes;
}

// Whether all elements, laid out densely, take at most so many bytes: sizes are the child's word.
bool fits_densely(const std::vector<std::int64_t>& shape, std::size_t element_bytes, std::uint64_t most) {
  std::uint64_t bytes = element_bytes;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return true;
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) || bytes > most) return false;
  }
  return true;
}

// Copies a strided tensor row-major.
template <class T>
void gather(const std::byte* from, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides, std::byte* to) {
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
      for (std::size_t i = 0; i < inner; ++i, to += sizeof(T)) std::memcpy(to, row + static_cast<std::int64_t>(i) * step * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    }
    for (std::size_t d = shape.size() - (shape.empty() ? 0 : 1); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

cpu_session::cpu_session(std::unique_ptr<sandbox_session> process, arena& memory) : process_(std::move(process)), memory_(&memory) {}
cpu_session::cpu_session(std::unique_ptr<sandbox_session> process, std::unique_ptr<arena> memory)
    : owned_(std::move(memory)), process_(std::move(process)), memory_(owned_.get()) {}
cpu_session::~cpu_session() = default;

cpu_session::region cpu_session::place(std::uint64_t& at, std::uint64_t bytes) const {
  const region placed{at, bytes};
  at += (bytes + alignment - 1) / alignment * alignment + guard_bytes;
  if (at > memory_->size()) throw std::length_error("the inputs do not fit into the arena of " + std::to_string(memory_->size()) + " bytes");
  return placed;
}

void cpu_session::arrange(std::size_t program, const std::vector<tensor_layout>& inputs, const std::vector<tensor_layout>& parameters, std::size_t sets) {
  program_ = program;
  input_layouts_ = inputs;
  parameter_layouts_ = parameters;
  parameters_changed_ = true;
  std::uint64_t at = arena_head_bytes + guard_bytes;
  parameters_.clear();
  for (const tensor_layout& layout : parameters) parameters_.push_back(place(at, layout.bytes()));
  inputs_.assign(sets, {});
  for (auto& set : inputs_) {
    for (const tensor_layout& layout : inputs) set.push_back(place(at, layout.bytes()));
  }
  const std::uint64_t end = (at + 4095) / 4096 * 4096;
  memory_->poison(arena_head_bytes, end);  // guards; the rest is overwritten
  scratch_begin_ = end;
  dirty_end_ = std::max(dirty_end_, end);
  poisoned_end_ = std::max(poisoned_end_, end);
}

void cpu_session::write_inputs(std::size_t set, const value_set& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const region& target = inputs_.at(set).at(i);
    if (values[i].bytes.size() != target.bytes) throw std::out_of_range("an input does not fit its buffer");
    std::copy(values[i].bytes.begin(), values[i].bytes.end(), memory_->at(target.begin));
  }
}

std::vector<std::span<std::byte>> cpu_session::input_places(std::size_t set) {
  std::vector<std::span<std::byte>> places;
  for (const region& r : inputs_.at(set)) places.emplace_back(memory_->at(r.begin), r.bytes);
  return places;
}

void cpu_session::write_parameters(const value_set& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].bytes.size() != parameters_.at(i).bytes) throw std::out_of_range("a parameter does not fit its buffer");
    std::copy(values[i].bytes.begin(), values[i].bytes.end(), memory_->at(parameters_[i].begin));
  }
  parameters_changed_ = true;
}

record<schema::Command> cpu_session::stage_command(std::span<const std::size_t> sets) const {
  record_builder<schema::Command> command;
  auto stage = command->initStage();
  stage.setProgram(static_cast<std::uint32_t>(program_));
  const auto describe = [](capnp::List<schema::Layout>::Builder list, const std::vector<tensor_layout>& layouts) {
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setDtype(static_cast<std::uint8_t>(layouts[i].type));
      auto shape = list[i].initShape(static_cast<unsigned>(layouts[i].shape.size()));
      for (unsigned d = 0; d < shape.size(); ++d) shape.set(d, layouts[i].shape[d]);
    }
  };
  describe(stage.initInputs(static_cast<unsigned>(input_layouts_.size())), input_layouts_);
  describe(stage.initParameters(static_cast<unsigned>(parameter_layouts_.size())), parameter_layouts_);
  auto offsets = stage.initParameterOffsets(static_cast<unsigned>(parameters_.size()));
  for (unsigned i = 0; i < offsets.size(); ++i) offsets.set(i, parameters_[i].begin);
  stage.setParametersChanged(parameters_changed_);
  auto calls = stage.initCalls(static_cast<unsigned>(sets.size()));
  for (unsigned c = 0; c < calls.size(); ++c) {
    const auto& set = inputs_.at(sets[c]);
    auto list = calls[c].initInputOffsets(static_cast<unsigned>(set.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, set[i].begin);
  }
  stage.setScratchBegin(scratch_begin_);
  stage.setPoisonedEnd(poisoned_end_);
  stage.setScratchEnd(memory_->size());
  return command.finish();
}

std::optional<program_failure> cpu_session::prepare(deadline until) {
  go_on();
  const auto failed = process_->prepare(stage_command({}), until);
  parameters_changed_ = false;
  look();
  if (failed) return failure_of(*failed);
  return std::nullopt;
}

std::variant<batch_clock, program_failure> cpu_session::run(std::span<const std::size_t> sets, deadline until) {
  go_on();
  memory_->poison(scratch_begin_, dirty_end_);
  last_sets_.assign(sets.begin(), sets.end());
  if (auto failed = process_->stage(stage_command(sets), until)) return failure_of(*failed);
  const auto clock = process_->go(until);
  look();  // at once: whatever it left running would use time that nobody counts
  // What the child says of its own use is only a hint: what it hides keeps its own leavings, which are no use to it.
  dirty_end_ = std::clamp(memory_->head().scratch_used + guard_bytes, scratch_begin_, memory_->size());
  poisoned_end_ = std::max(poisoned_end_, dirty_end_);
  if (const auto* failed = std::get_if<session_failure>(&clock)) return failure_of(*failed);
  const auto& [cpu_ns, wall_ns, outside_ns] = std::get<run_clock>(clock);
  const bool prepared = std::exchange(parameters_changed_, false);
  return batch_clock{static_cast<double>(cpu_ns), static_cast<double>(wall_ns), prepared ? 0 : static_cast<double>(outside_ns)};
}

void cpu_session::look() {
  if (!frozen_) process_->freeze();
  frozen_ = true;
}

void cpu_session::go_on() {
  if (frozen_) process_->thaw();
  frozen_ = false;
}

std::variant<cpu_session::output_place, program_failure> cpu_session::locate(std::size_t call, std::size_t output) {
  look();
  const arena_head& head = memory_->head();
  const std::size_t index = call * head.outputs_per_call + output;
  if (index >= std::min(head.output_count, max_arena_outputs)) return program_failure{Outcome::CRASH, "", "the process did not describe its outputs"};
  const arena_output out = head.outputs[index];
  const std::string name = "output " + std::to_string(output);
  if (out.dtype > static_cast<std::uint32_t>(dtype::boolean) || out.dimensions > out.sizes.size()) {
    return program_failure{Outcome::WRONG_RESULT, "", name + " is of a type or layout that no task has"};
  }
  output_place placed;
  placed.layout.type = static_cast<dtype>(out.dtype);
  placed.layout.shape.assign(out.sizes.begin(), out.sizes.begin() + out.dimensions);
  placed.strides.assign(out.strides.begin(), out.strides.begin() + out.dimensions);
  const auto bytes = extent_bytes(out, bytes_of(placed.layout.type));
  if (!bytes || !fits_densely(placed.layout.shape, bytes_of(placed.layout.type), memory_->size())) {
    return program_failure{Outcome::WRONG_RESULT, "", name + " has an impossible shape"};
  }
  placed.extent = {out.offset, *bytes};
  if (*bytes > 0 && (out.offset < arena_head_bytes || out.offset > memory_->size() || *bytes > memory_->size() - out.offset)) placed.extent.begin = not_in_arena;
  return placed;
}

std::variant<value_set, program_failure> cpu_session::outputs(std::size_t call) {
  look();
  const std::uint32_t count = memory_->head().outputs_per_call;
  if (count == 0 || count > 64) return program_failure{Outcome::CRASH, "", "the process did not describe its outputs"};
  value_set values;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto located = locate(call, i);
    if (auto* failed = std::get_if<program_failure>(&located)) return *failed;
    const auto& place = std::get<output_place>(located);
    if (place.extent.bytes > 0 && place.extent.begin == not_in_arena) {
      return program_failure{Outcome::CHEATING, "output_alias", "output " + std::to_string(i) + " is not memory that the call allocated"};
    }
    tensor_value value{place.layout, std::vector<std::byte>(place.layout.bytes())};
    if (place.extent.bytes > 0) {
      const std::byte* from = memory_->at(place.extent.begin);
      switch (bytes_of(place.layout.type)) {
        case 1: gather<std::uint8_t>(from, place.layout.shape, place.strides, value.bytes.data()); break;
        case 2: gather<std::uint16_t>(from, place.layout.shape, place.strides, value.bytes.data()); break;
        case 4: gather<std::uint32_t>(from, place.layout.shape, place.strides, value.bytes.data()); break;
        default: gather<std::uint64_t>(from, place.layout.shape, place.strides, value.bytes.data()); break;
      }
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::set<shared_memory_of_output> cpu_session::aliases(std::size_t call) {
  using with = shared_memory_of_output::with;
  look();
  std::set<shared_memory_of_output> shared;
  const std::size_t count = std::min<std::size_t>(memory_->head().outputs_per_call, 64);
  std::vector<region> own;
  for (std::size_t o = 0; o < count; ++o) {
    const auto located = locate(call, o);
    own.push_back(std::holds_alternative<output_place>(located) ? std::get<output_place>(located).extent : region{});
  }
  for (std::size_t o = 0; o < count; ++o) {
    if (own[o].bytes == 0) continue;
    if (own[o].begin == not_in_arena) {
      shared.insert({o, with::foreign, 0});
      continue;
    }
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (own[o].overlaps(parameters_[p])) shared.insert({o, with::parameter, p});
    }
    for (std::size_t s = 0; s < inputs_.size(); ++s) {
      for (std::size_t i = 0; i < inputs_[s].size(); ++i) {
        if (own[o].overlaps(inputs_[s][i])) shared.insert({o, s == last_sets_.at(call) ? with::input : with::foreign, i});
      }
    }
    for (std::size_t other = 0; other < o; ++other) {
      if (own[other].bytes > 0 && own[o].overlaps(own[other])) shared.insert({o, with::output, other});
    }
    for (std::size_t earlier = 0; earlier < call; ++earlier) {
      for (std::size_t other = 0; other < count; ++other) {
        const auto located = locate(earlier, other);
        const auto* place = std::get_if<output_place>(&located);
        if (place != nullptr && place->extent.bytes > 0 && own[o].overlaps(place->extent)) shared.insert({o, with::earlier_call, other});
      }
    }
  }
  return shared;
}

std::size_t cpu_session::output_bytes(std::size_t call) {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < std::min(memory_->head().outputs_per_call, 64U); ++i) {
    const auto located = locate(call, i);
    if (const auto* place = std::get_if<output_place>(&located)) bytes += std::min<std::size_t>(place->extent.bytes, place->layout.bytes());
  }
  return bytes;
}

bool cpu_session::inputs_hold(std::size_t set, const value_set& values) {
  look();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::equal(values[i].bytes.begin(), values[i].bytes.end(), memory_->at(inputs_.at(set).at(i).begin))) return false;
  }
  return true;
}

bool cpu_session::parameters_hold(const value_set& values) {
  look();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::equal(values[i].bytes.begin(), values[i].bytes.end(), memory_->at(parameters_.at(i).begin))) return false;
  }
  return true;
}

std::optional<std::string> cpu_session::memory_damage() {
  look();
  const auto around = [&](const region& r) {
    const std::uint64_t end = r.begin + r.bytes;
    return memory_->is_poison(r.begin - guard_bytes, r.begin) && memory_->is_poison(end, (end + alignment - 1) / alignment * alignment + guard_bytes);
  };
  for (const region& r : parameters_) {
    if (!around(r)) return "wrote outside of a parameter's buffer";
  }
  for (const auto& set : inputs_) {
    for (const region& r : set) {
      if (!around(r)) return "wrote outside of an input's buffer";
    }
  }
  const arena_head& head = memory_->head();
  const std::uint32_t count = std::min(head.allocation_count, max_arena_allocations);
  for (std::uint32_t i = 0; i < count; ++i) {
    const region r{head.allocations[i].offset, head.allocations[i].bytes};
    if (r.begin < scratch_begin_ + guard_bytes || r.begin > memory_->size() || r.bytes > memory_->size() - r.begin) return "the record of its buffers is damaged";
    // Behind the last allocation nothing has been poisoned yet, if the run has used memory for the first time.
    const std::uint64_t end = r.begin + r.bytes;
    const std::uint64_t guard_end = std::min(poisoned_end_, (end + alignment - 1) / alignment * alignment + guard_bytes);
    if (!memory_->is_poison(r.begin - guard_bytes, r.begin) || !memory_->is_poison(end, guard_end)) return "wrote outside of a buffer that it allocated";
  }
  return std::nullopt;
}

}  // namespace hone
