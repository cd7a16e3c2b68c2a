#include "evaluation/backends/cpu/module_session.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "evaluation/backends/cpu/arena_outputs.hpp"
#include "evaluation/sandbox/programs.hpp"

namespace hone {

module_session::module_session(std::unique_ptr<sandbox_session> process, arena& memory)
    : process_(std::move(process)), memory_(&memory) {}
module_session::~module_session() = default;

void module_session::arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
                             const std::vector<tensor_layout>& parameters, std::size_t sets) {
  plan_.arrange(program, inputs, parameters, sets, arena_head_bytes, memory_->size());
  if (plan_.end() > module_heap_begin)
    throw std::length_error("the inputs do not fit into the arena of a Python module, which has " +
                            std::to_string(module_heap_begin) + " bytes for them");
  memory_->poison(arena_head_bytes, plan_.end());
  poisoned_end_ = plan_.end();
}

std::vector<std::span<std::byte>> module_session::input_places(std::size_t set) {
  std::vector<std::span<std::byte>> places;
  for (const arena_region& r : plan_.inputs(set))
    places.emplace_back(memory_->at(r.begin), r.bytes);
  return places;
}

void module_session::write_parameters(const value_set& /*values*/, std::uint64_t seed) {
  parameters_changed_ = parameters_changed_ || seed != seed_;
  seed_ = seed;
}

record<schema::Command> module_session::stage(std::span<const std::size_t> sets) const {
  return stage_command(plan_, sets, parameters_changed_, {}, 0, row_major_outputs_, poison_byte,
                       seed_);
}

program_result<void> module_session::prepare(time_point deadline) {
  if (!parameters_changed_) return {};
  process_->thaw();
  auto prepared = process_->prepare(stage({}), deadline);
  parameters_changed_ = false;
  process_->freeze();
  return prepared;
}

program_result<batch_clock> module_session::run(std::span<const std::size_t> sets,
                                                time_point deadline, const input_writer& write) {
  committed_.clear();
  last_sets_.assign(sets.begin(), sets.end());
  process_->thaw();
  if (auto staged = process_->stage(stage(sets), deadline); !staged) return failed(staged.error());
  auto clock =
      process_->go(sets.size(), deadline, write, [this](std::size_t call) { commit(call); });
  process_->freeze();
  if (!clock) return clock;
  if (std::exchange(parameters_changed_, false)) clock->outside_ns = 0;
  return clock;
}

// Every call is committed, so that a module cannot tell which ones will be checked.
void module_session::commit(std::size_t call) {
  const bool is_frozen = process_->has_threads();
  if (is_frozen) process_->freeze();
  committed_call now{
      read_outputs(*memory_, plan_, call), plan_.aliases(memory_->head(), call, last_sets_),
      plan_.row_major_outputs(memory_->head(), call), plan_.output_bytes(memory_->head(), call)};
  std::erase_if(now.aliases, [](const output_alias& shared) {
    return shared.what == output_alias::with::earlier_call;
  });
  // An output that a module has returned must not be right for a later call. Memory between its
  // elements may be the module's own.
  for (std::size_t i = 0; now.values && i < now.values->size(); ++i) {
    const auto place = plan_.locate(memory_->head(), call, i);
    if (place && place->extent.begin != not_in_arena && place->extent.begin >= module_heap_begin &&
        place->extent.bytes == place->layout.bytes())
      std::memset(memory_->at(place->extent.begin), poison_byte, place->extent.bytes);
  }
  committed_.push_back(std::move(now));
  if (is_frozen) process_->thaw();
}

program_result<std::uint64_t> module_session::study(const study_plan& /*plan*/,
                                                    time_point /*deadline*/) {
  return failed(Outcome::INFRASTRUCTURE, "a Python module cannot be studied");
}

program_result<value_set> module_session::outputs(std::size_t call) {
  return committed_.at(call).values;
}
std::set<output_alias> module_session::aliases(std::size_t call) {
  return committed_.at(call).aliases;
}
std::uint64_t module_session::row_major_outputs(std::size_t call) {
  return committed_.at(call).row_major;
}
std::size_t module_session::output_bytes(std::size_t call) { return committed_.at(call).bytes; }

bool module_session::inputs_hold(std::size_t set, const value_set& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::equal(values[i].bytes.begin(), values[i].bytes.end(),
                    memory_->at(plan_.inputs(set).at(i).begin)))
      return false;
  }
  return true;
}

std::optional<std::string> module_session::memory_damage() {
  for (const arena_plan::guard& g : plan_.guards()) {
    if (!memory_->is_poison(g.range.begin, g.range.end())) return g.damage;
  }
  return std::nullopt;
}

value_set module_session::parameters() {
  value_set values;
  for (std::size_t i = 0; i < plan_.parameters().size(); ++i) {
    const arena_region& place = plan_.parameters()[i];
    values.push_back({plan_.parameter_layouts()[i],
                      {memory_->at(place.begin), memory_->at(place.begin) + place.bytes}});
  }
  return values;
}

}  // namespace hone
