#include "evaluation/backends/cpu/cpu_session.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "evaluation/backends/cpu/arena_outputs.hpp"
#include "evaluation/sandbox/programs.hpp"

namespace hone {
cpu_session::cpu_session(std::unique_ptr<sandbox_session> process, arena& memory)
    : process_(std::move(process)), memory_(&memory) {}
cpu_session::cpu_session(std::unique_ptr<sandbox_session> process, std::unique_ptr<arena> memory)
    : owned_(std::move(memory)), process_(std::move(process)), memory_(owned_.get()) {}
cpu_session::~cpu_session() = default;

void cpu_session::arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                          const std::vector<tensor_layout>& parameters, std::size_t sets) {
  plan_.arrange(program, inputs, parameters, sets, arena_head_bytes, memory_->size());
  parameters_changed_ = true;
  // For the guards; the rest is overwritten.
  memory_->poison(arena_head_bytes, plan_.end(), argument_poison());
  dirty_end_ = poisoned_end_ = std::max(poisoned_end_, plan_.end());
}

// The poison changes with the parameters, not from run to run: a program that leaves results
// unwritten where the poison has the same value must not be fast in one run of each batch. Guards
// get the new byte here, scratch memory in the next run.
void cpu_session::change_poison() {
  ++poison_;
  for (const arena_plan::guard& g : plan_.guards())
    memory_->poison(g.range.begin, g.range.end(), argument_poison());
  dirty_end_ = poisoned_end_;
}

std::vector<std::span<std::byte>> cpu_session::input_places(std::size_t set) {
  std::vector<std::span<std::byte>> places;
  for (const arena_region& r : plan_.inputs(set))
    places.emplace_back(memory_->at(r.begin), r.bytes);
  return places;
}

void cpu_session::write_parameters(const value_set& values, std::uint64_t /*seed*/) {
  change_poison();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].bytes.size() != plan_.parameters().at(i).bytes)
      throw std::out_of_range("a parameter does not fit its buffer");
    std::copy(values[i].bytes.begin(), values[i].bytes.end(),
              memory_->at(plan_.parameters()[i].begin));
  }
  parameters_changed_ = true;
}

record<schema::Command> cpu_session::stage(std::span<const std::size_t> sets) const {
  return stage_command(plan_, sets, parameters_changed_,
                       {plan_.end(), memory_->size() - plan_.end()}, poisoned_end_,
                       row_major_outputs_, scratch_poison());
}

program_result<void> cpu_session::prepare(time_point deadline) {
  thaw();
  auto prepared = process_->prepare(stage({}), deadline);
  parameters_changed_ = false;
  freeze();
  return prepared;
}

program_result<batch_clock> cpu_session::run(std::span<const std::size_t> sets, time_point deadline,
                                             const input_writer& write) {
  thaw();
  memory_->poison(plan_.end(), dirty_end_, scratch_poison());
  last_sets_.assign(sets.begin(), sets.end());
  if (auto staged = process_->stage(stage(sets), deadline); !staged) return failed(staged.error());
  auto clock = process_->go(sets.size(), deadline, write);
  freeze();  // at once, because threads that still run would use time that no clock measures
  note_scratch_use();
  if (!clock) return clock;
  const bool prepared = std::exchange(parameters_changed_, false);
  if (prepared) clock->outside_ns = 0;
  return clock;
}

program_result<std::uint64_t> cpu_session::study(const study_plan& plan, time_point deadline) {
  thaw();
  memory_->poison(plan_.end(), dirty_end_, scratch_poison());
  last_sets_.assign(plan.runs.size(), 0);
  const std::size_t set = 0;
  auto studied = process_->stage(stage({&set, 1}), deadline);
  if (studied) studied = process_->study(plan, deadline);
  freeze();
  note_scratch_use();
  parameters_changed_ = false;
  if (!studied) return failed(studied.error());
  return memory_->head().decisions;
}

// The process itself reports how much memory it used. If it reports too little, the rest keeps its
// old contents, which are of no use to the process.
void cpu_session::note_scratch_use() {
  const std::uint64_t used = std::clamp(memory_->head().scratch_used, plan_.end(), memory_->size());
  dirty_end_ = std::min(used + guard_bytes, memory_->size());
  poisoned_end_ = std::max(poisoned_end_, std::min(used + poisoned_tail_bytes, memory_->size()));
}

void cpu_session::discard_outputs() {
  poisoned_end_ = std::min(poisoned_end_, memory_->release(plan_.end()));
}

void cpu_session::freeze() {
  if (!frozen_) process_->freeze();
  frozen_ = true;
}

void cpu_session::thaw() {
  if (frozen_) process_->thaw();
  frozen_ = false;
}

program_result<value_set> cpu_session::outputs(std::size_t call) {
  freeze();
  return read_outputs(*memory_, plan_, call);
}

std::set<output_alias> cpu_session::aliases(std::size_t call) {
  freeze();
  return plan_.aliases(memory_->head(), call, last_sets_);
}

std::uint64_t cpu_session::row_major_outputs(std::size_t call) {
  freeze();
  return plan_.row_major_outputs(memory_->head(), call);
}

std::size_t cpu_session::output_bytes(std::size_t call) {
  freeze();
  return plan_.output_bytes(memory_->head(), call);
}

bool cpu_session::inputs_hold(std::size_t set, const value_set& values) {
  freeze();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::equal(values[i].bytes.begin(), values[i].bytes.end(),
                    memory_->at(plan_.inputs(set).at(i).begin)))
      return false;
  }
  return true;
}

bool cpu_session::parameters_hold(const value_set& values) {
  freeze();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::equal(values[i].bytes.begin(), values[i].bytes.end(),
                    memory_->at(plan_.parameters().at(i).begin)))
      return false;
  }
  return true;
}

std::optional<std::string> cpu_session::memory_damage() {
  freeze();
  const auto own = plan_.scratch_guards(memory_->head(), plan_.end(), poisoned_end_);
  if (!own) return "the record of its buffers is damaged";
  for (const arena_plan::guard& g : plan_.guards()) {
    if (!memory_->is_poison(g.range.begin, g.range.end(), argument_poison())) return g.damage;
  }
  for (const arena_plan::guard& g : *own) {
    if (!memory_->is_poison(g.range.begin, g.range.end(), scratch_poison())) return g.damage;
  }
  if (!memory_->is_poison(dirty_end_, poisoned_end_, scratch_poison()))
    return "wrote beyond all of its buffers";
  return std::nullopt;
}

}  // namespace hone
