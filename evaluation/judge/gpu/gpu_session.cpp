#include "evaluation/judge/gpu/gpu_session.hpp"

#include <algorithm>
#include <cmath>

namespace hone {

gpu_arena::gpu_arena(const judge_gpu& gpu, std::uint64_t bytes)
    : memory_(gpu.allocate(bytes)), handle_(gpu.export_handle(memory_)) {
  poison(gpu, 0, bytes);
  gpu.finish();
}

void gpu_arena::poison(const judge_gpu& gpu, std::uint64_t begin, std::uint64_t end,
                       unsigned char with) const {
  if (end > begin) gpu.fill(at(begin), with, end - begin);
}

void gpu_arena::poison_used(const judge_gpu& gpu) {
  poison(gpu, dirty_begin_, dirty_end_);
  dirty_begin_ = dirty_end_ = 0;
}

void gpu_arena::poison_all(const judge_gpu& gpu) {
  poison(gpu, 0, size());
  dirty_begin_ = dirty_end_ = 0;
}

void gpu_session::arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                          const std::vector<tensor_layout>& parameters, std::size_t sets,
                          std::uint64_t begin) {
  plan_.arrange(program, inputs, parameters, sets, begin, arena_->size());
  arena_->poison_used(*gpu_);
  arena_->use_from(begin);
  arena_->note_use(plan_.end());
  scratch_begin_ = plan_.end();
}

void gpu_session::write(const std::vector<arena_region>& to, const gpu_tensors& from) {
  for (std::size_t i = 0; i < from.layouts.size(); ++i)
    gpu_->copy(arena_->at(to.at(i).begin), from.memory[i].at(), from.layouts[i].bytes());
}

bool gpu_session::holds(const std::vector<arena_region>& places, const gpu_tensors& written) const {
  for (std::size_t i = 0; i < written.layouts.size(); ++i) {
    if (!gpu_->equal(arena_->at(places.at(i).begin), written.memory[i].at(),
                     written.layouts[i].bytes()))
      return false;
  }
  return true;
}

// What the process says of its own use is only a hint: what it hides keeps its own leavings, which
// are no use to it.
void gpu_session::note_scratch_use() {
  arena_->note_use(arena_->head().scratch_used + guard_bytes);
}

std::optional<program_failure> gpu_session::prepare(time_point until) {
  scratch_begin_ = plan_.end();
  arena_->poison(*gpu_, scratch_begin_, arena_->dirty_end());
  gpu_->finish();
  last_sets_.clear();
  const auto failed = process_->stage(
      plan_.stage({}, true, {scratch_begin_, arena_->size() - scratch_begin_}, arena_->size()),
      until);
  note_scratch_use();
  if (failed) return failure_of(*failed);
  return keep_prepared();
}

// What has been allocated so far is prepare()'s; calls have what lies behind it.
std::optional<program_failure> gpu_session::keep_prepared() {
  const std::uint64_t used = arena_->head().scratch_used;
  if (used < scratch_begin_ || used > arena_->size())
    return program_failure{Outcome::CRASH, "", "the record of its buffers is damaged"};
  scratch_begin_ = used;
  return std::nullopt;
}

std::optional<program_failure> gpu_session::stage(std::span<const std::size_t> sets,
                                                  bool parameters_changed, time_point until) {
  other_poison_ = !other_poison_;
  arena_->poison(*gpu_, scratch_begin_, arena_->dirty_end(),
                 other_poison_ ? other_poison_byte : poison_byte);
  gpu_->finish();
  last_sets_.assign(sets.begin(), sets.end());
  const auto failed = process_->stage(
      plan_.stage(sets, parameters_changed, {scratch_begin_, arena_->size() - scratch_begin_},
                  arena_->size()),
      until);
  if (failed) return failure_of(*failed);
  return std::nullopt;
}

std::optional<program_failure> gpu_session::run(std::span<const std::size_t> sets,
                                                time_point until) {
  if (auto failed = stage(sets, false, until)) return failed;
  return go(until);
}

std::optional<program_failure> gpu_session::run_anew(std::span<const std::size_t> sets,
                                                     time_point until) {
  scratch_begin_ = plan_.end();
  auto failed = stage(sets, true, until);
  note_scratch_use();
  if (!failed) failed = keep_prepared();
  return failed ? failed : go(until);
}

std::optional<program_failure> gpu_session::go(time_point until) {
  const auto failed = process_->go(until);
  note_scratch_use();
  if (failed) return failure_of(*failed);
  return std::nullopt;
}

std::variant<std::vector<call_clock>, program_failure> gpu_session::time(
    std::span<const std::size_t> sets, const std::vector<std::vector<std::uint64_t>>& keys,
    const flush_plan& flushes, time_point until) {
  if (auto failed = stage(sets, false, until)) return *failed;
  const auto failed = process_->time(keys, flushes, until);
  note_scratch_use();
  if (failed) return failure_of(*failed);
  const auto& clocks = arena_->head().call_clocks;
  std::vector<call_clock> taken(
      clocks.begin(),
      clocks.begin() + static_cast<std::ptrdiff_t>(std::min(sets.size(), clocks.size())));
  const auto is_time = [](double ns) { return std::isfinite(ns) && ns >= 0; };
  if (!std::all_of(taken.begin(), taken.end(), [&](const call_clock& c) {
        return is_time(c.event_ns) && is_time(c.host_ns) && is_time(c.launch_ns) &&
               is_time(c.flush_ns);
      }))
    return program_failure{Outcome::CRASH, "", "the record of its times is damaged"};
  return taken;
}

std::variant<train_clock, program_failure> gpu_session::train(std::span<const std::size_t> sets,
                                                              std::uint32_t repeats, bool traced,
                                                              time_point until) {
  if (auto failed = stage(sets, false, until)) return *failed;
  const auto failed = process_->train(repeats, traced, until);
  last_sets_ = {sets.back()};
  note_scratch_use();
  if (failed) return failure_of(*failed);
  const train_clock clocks = arena_->head().train;
  for (const double ns : {clocks.device_ns, clocks.wall_ns, clocks.span_ns, clocks.busy_ns}) {
    if (!std::isfinite(ns) || ns < 0)
      return program_failure{Outcome::CRASH, "", "the record of its times is damaged"};
  }
  return clocks;
}

std::variant<std::vector<gpu_output>, program_failure> gpu_session::outputs(
    std::size_t call) const {
  const auto count = arena_plan::outputs_per_call(arena_->head());
  if (const auto* failed = std::get_if<program_failure>(&count)) return *failed;
  std::vector<gpu_output> all;
  for (std::uint32_t i = 0; i < std::get<std::uint32_t>(count); ++i) {
    const auto located = plan_.locate(arena_->head(), call, i);
    if (const auto* failed = std::get_if<program_failure>(&located)) return *failed;
    const auto& place = std::get<output_place>(located);
    if (place.extent.bytes > 0 && place.extent.begin == not_in_arena) {
      return program_failure{
          Outcome::CHEATING, "output_alias",
          "output " + std::to_string(i) + " is not memory that the call allocated"};
    }
    all.push_back(
        {place.layout, place.strides, place.extent.bytes > 0 ? arena_->at(place.extent.begin) : 0});
  }
  return all;
}

std::vector<kernel_launch> gpu_session::launches() const {
  const arena_head& head = arena_->head();
  return {head.launches.begin(),
          head.launches.begin() + std::min(head.launch_count, max_kernel_launches)};
}

std::optional<std::string> gpu_session::memory_damage() {
  auto all = plan_.guards();
  const auto own = plan_.scratch_guards(arena_->head(), scratch_begin_, arena_->size());
  if (!own) return "the record of its buffers is damaged";
  all.insert(all.end(), own->begin(), own->end());
  std::vector<gpu_stretch> stretches;
  for (const arena_plan::guard& g : all) stretches.push_back({g.stretch.begin, g.stretch.end()});
  const auto first = gpu_->find_damage(arena_->at(0), stretches);
  if (first) return all[*first].damage;
  return std::nullopt;
}

}  // namespace hone
