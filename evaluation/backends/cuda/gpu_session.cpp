#include "evaluation/backends/cuda/gpu_session.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "evaluation/sandbox/programs.hpp"

namespace hone {
namespace {

constexpr const char* damaged_buffers = "the record of its buffers is damaged";
constexpr const char* damaged_times = "the record of its times is damaged";

// Part of the tail that one block of threads checks, in bytes.
constexpr std::uint64_t tail_piece_bytes = 16U << 10U;

bool are_times(std::initializer_list<double> all_ns) {
  return std::all_of(all_ns.begin(), all_ns.end(),
                     [](double ns) { return std::isfinite(ns) && ns >= 0; });
}

}  // namespace

void gpu_session::arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                          const std::vector<tensor_layout>& parameters, std::size_t sets,
                          std::uint64_t begin) {
  plan_.arrange(program, inputs, parameters, sets, begin, arena_->size());
  arena_->poison_used(*gpu_);
  arena_->use_from(begin);
  arena_->note_use(plan_.end());
  scratch_begin_ = plan_.end();
  poisoned_end_ = 0;
}

std::vector<gpu_context::range_pair> gpu_session::pairs_of(const std::vector<arena_region>& places,
                                                           const gpu_tensors& tensors) const {
  std::vector<gpu_context::range_pair> pairs;
  for (std::size_t i = 0; i < tensors.layouts.size(); ++i)
    pairs.push_back(
        {arena_->at(places.at(i).begin), tensors.memory[i].at(), tensors.layouts[i].bytes()});
  return pairs;
}

void gpu_session::write(const std::vector<arena_region>& to, const gpu_tensors& from) {
  gpu_->copy_all(pairs_of(to, from));
}

bool gpu_session::holds(const std::vector<arena_region>& places, const gpu_tensors& written) const {
  return gpu_->all_equal(pairs_of(places, written));
}

// Notes the scratch memory of the last run. The process itself reports how much it used. If it
// reports too little, the rest keeps its old contents, which are of no use to the process.
void gpu_session::note_scratch_use() {
  arena_->note_use(arena_->head().scratch_used + poisoned_tail_bytes);
}

program_result<void> gpu_session::prepare(time_point deadline) {
  scratch_begin_ = plan_.end();
  arena_->poison(*gpu_, scratch_begin_, arena_->dirty_end());
  poisoned_end_ = 0;
  gpu_->finish();
  last_sets_.clear();
  auto staged = process_->stage(
      stage_command(plan_, {}, true, {scratch_begin_, arena_->size() - scratch_begin_},
                    arena_->size(), row_major_outputs_),
      deadline);
  note_scratch_use();
  return staged ? keep_prepared() : staged;
}

// Keeps the memory that prepare() has allocated: calls use the memory after it.
program_result<void> gpu_session::keep_prepared() {
  const std::uint64_t used = arena_->head().scratch_used;
  if (used < scratch_begin_ || used > arena_->size())
    return failed(Outcome::CRASH, damaged_buffers);
  scratch_begin_ = used;
  return {};
}

program_result<void> gpu_session::stage(std::span<const std::size_t> sets, bool parameters_changed,
                                        time_point deadline, std::uint64_t seed) {
  poison_ = poison_ == poison_byte ? other_poison_byte : poison_byte;
  arena_->poison(*gpu_, scratch_begin_, arena_->dirty_end(), poison_);
  poisoned_end_ = arena_->dirty_end();
  gpu_->finish();
  last_sets_.assign(sets.begin(), sets.end());
  return process_->stage(stage_command(plan_, sets, parameters_changed,
                                       {scratch_begin_, arena_->size() - scratch_begin_},
                                       arena_->size(), row_major_outputs_, poison_byte, seed),
                         deadline);
}

program_result<void> gpu_session::run(std::span<const std::size_t> sets, time_point deadline) {
  auto staged = stage(sets, false, deadline);
  return staged ? go(deadline) : staged;
}

program_result<void> gpu_session::run_anew(std::span<const std::size_t> sets, time_point deadline) {
  scratch_begin_ = plan_.end();
  auto prepared = stage(sets, true, deadline);
  note_scratch_use();
  if (prepared) prepared = keep_prepared();
  return prepared ? go(deadline) : prepared;
}

program_result<std::uint64_t> gpu_session::study(const study_plan& plan, time_point deadline) {
  scratch_begin_ = plan_.end();
  const std::size_t set = 0;
  auto studied = stage({&set, 1}, true, deadline);
  note_scratch_use();
  if (studied) studied = keep_prepared();
  last_sets_.assign(plan.runs.size(), set);
  if (studied) studied = process_->study(plan, deadline);
  note_scratch_use();
  if (!studied) return failed(studied.error());
  return arena_->head().decisions;
}

program_result<void> gpu_session::go(time_point deadline) {
  auto done = process_->go(deadline);
  note_scratch_use();
  return done;
}

program_result<std::vector<call_clock>> gpu_session::time(
    std::span<const std::size_t> sets, const std::vector<std::vector<std::uint64_t>>& keys,
    const flush_plan& flushes, time_point deadline) {
  if (auto staged = stage(sets, false, deadline); !staged) return failed(staged.error());
  const auto done = process_->time(keys, flushes, deadline);
  note_scratch_use();
  if (!done) return failed(done.error());
  const auto& clocks = arena_->head().call_clocks;
  std::vector<call_clock> taken(
      clocks.begin(),
      clocks.begin() + static_cast<std::ptrdiff_t>(std::min(sets.size(), clocks.size())));
  for (const call_clock& c : taken) {
    if (!are_times({c.event_ns, c.host_ns, c.launch_ns, c.flush_ns}))
      return failed(Outcome::CRASH, damaged_times);
  }
  return taken;
}

program_result<burst_clock> gpu_session::burst(std::span<const std::size_t> sets,
                                               const burst_plan& plan, time_point deadline) {
  if (auto staged = stage(sets, false, deadline); !staged) return failed(staged.error());
  const auto done = process_->burst(plan, deadline);
  last_sets_ = {sets.back()};
  note_scratch_use();
  if (!done) return failed(done.error());
  const burst_clock clock = arena_->head().burst;
  if (!are_times({clock.device_ns, clock.wall_ns, clock.span_ns, clock.busy_ns}))
    return failed(Outcome::CRASH, damaged_times);
  return clock;
}

program_result<std::vector<gpu_output>> gpu_session::outputs(std::size_t call) const {
  const auto count = arena_plan::outputs_per_call(arena_->head());
  if (!count) return failed(count.error());
  std::vector<gpu_output> all;
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto place = plan_.locate(arena_->head(), call, i);
    if (!place) return failed(place.error());
    const bool is_empty = place->extent.bytes == 0;
    if (!is_empty && place->extent.begin == not_in_arena) {
      return cheated("output_alias",
                     "output " + std::to_string(i) + " is not memory that the call allocated");
    }
    all.push_back({place->layout, place->strides, is_empty ? 0 : arena_->at(place->extent.begin)});
  }
  return all;
}

std::vector<kernel_launch> gpu_session::launches() const {
  const arena_head& head = arena_->head();
  return {head.launches.begin(),
          head.launches.begin() + std::min(head.launch_count, max_kernel_launches)};
}

std::optional<std::string> gpu_session::memory_damage() {
  const auto own = plan_.scratch_guards(arena_->head(), scratch_begin_, arena_->size());
  if (!own) return damaged_buffers;
  std::vector<gpu_range> ranges;
  std::vector<const char*> damage;  // by range
  const auto expect = [&](std::uint64_t begin, std::uint64_t end, unsigned char byte,
                          const char* message) {
    if (begin >= end) return;
    ranges.push_back({begin, end, byte});
    damage.push_back(message);
  };
  // Scratch memory that earlier runs have used holds the poison of this run, the rest the usual
  // one.
  const auto expect_scratch = [&](std::uint64_t begin, std::uint64_t end, const char* message) {
    expect(begin, std::min(end, poisoned_end_), poison_, message);
    expect(std::max(begin, poisoned_end_), end, poison_byte, message);
  };
  for (const arena_plan::guard& g : plan_.guards())
    expect(g.range.begin, g.range.end(), poison_byte, g.damage);
  for (const arena_plan::guard& g : *own) expect_scratch(g.range.begin, g.range.end(), g.damage);
  // The tail is checked in pieces, by a block of threads each.
  const std::uint64_t used = std::max(arena_->head().scratch_used, scratch_begin_);
  for (std::uint64_t piece = 0; piece < poisoned_tail_bytes; piece += tail_piece_bytes) {
    const std::uint64_t begin = std::min(used + piece, arena_->size());
    expect_scratch(begin, std::min(begin + tail_piece_bytes, arena_->size()),
                   "wrote beyond all of its buffers");
  }
  const auto first = gpu_->find_damage(arena_->at(0), ranges);
  if (first) return damage[*first];
  return std::nullopt;
}

}  // namespace hone
