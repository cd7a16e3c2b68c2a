#include "evaluation/backends/cuda/gpu_module_session.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "evaluation/judge/statistics.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t max_overheads = 127;  // the most recent ones
// A candidate's time is never less: the overhead is known to about a microsecond.
constexpr double min_call_ns = 500;

double ns_since(clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(clock::now() - begin).count();
}

}  // namespace

void gpu_module_session::write_parameters(const gpu_tensors& /*from*/, std::uint64_t seed) {
  changed_ = changed_ || seed != seed_;
  seed_ = seed;
}

// Runs work for which the process has to run. A candidate is stopped otherwise, so that it launches
// nothing while the reference is timed.
template <class Work>
auto gpu_module_session::thawed(Work&& work) -> decltype(work()) {
  if (reference_ == nullptr) return work();
  process().thaw();
  auto done = work();
  process().freeze();
  return done;
}

program_result<void> gpu_module_session::prepare(time_point deadline) {
  if (!changed_) return {};
  changed_ = false;
  return thawed([&] { return stage({}, true, deadline, seed_); });
}

program_result<void> gpu_module_session::run(std::span<const std::size_t> sets,
                                             time_point deadline) {
  committed_calls_ = 0;
  return thawed([&] {
    auto staged = stage(sets, std::exchange(changed_, false), deadline, seed_);
    return staged ? go(deadline) : staged;
  });
}

program_result<void> gpu_module_session::construct(std::uint64_t seed, const gpu_tensors& to,
                                                   time_point deadline) {
  arrange(0, {}, to.layouts, 1);
  seed_ = seed;
  changed_ = false;
  auto made = thawed([&] { return stage({}, true, deadline, seed_); });
  if (!made) return made;
  for (std::size_t i = 0; i < to.layouts.size(); ++i)
    gpu().copy(to.memory[i].at(), parameter(i), to.layouts[i].bytes());
  gpu().finish();
  return {};
}

// Copies the outputs of a call to memory that no other process maps. All calls are copied, so that
// a module cannot tell which ones will be checked.
void gpu_module_session::commit(std::size_t call) {
  if (committed_.size() <= call) committed_.resize(call + 1);
  committed_call& kept = committed_[call];
  kept.outputs = gpu_session::outputs(call);
  if (!kept.outputs) return;  // what is wrong with them is found when they are checked
  kept.memory.resize(std::max(kept.memory.size(), kept.outputs->size()));
  for (std::size_t i = 0; i < kept.outputs->size(); ++i) {
    gpu_output& output = (*kept.outputs)[i];
    const auto place = plan().locate(arena().head(), call, i);
    if (!place || place->extent.bytes == 0) continue;
    // Outputs of one shape need the same memory in every call, so this allocates once.
    gpu().grow(kept.memory[i], place->extent.bytes);
    gpu().copy(kept.memory[i].at(), arena().at(place->extent.begin), place->extent.bytes);
    output.at = kept.memory[i].at();
  }
}

// Returns the nanoseconds of the judge's interval.
program_result<double> gpu_module_session::turn(std::size_t call, std::size_t set,
                                                const std::vector<std::uint64_t>& keys,
                                                std::uint32_t flushes, time_point deadline) {
  // The GPU has done other work, and the host's clock must not see what that leaves behind.
  const std::uint64_t flushed = flush_->memory.bytes();
  gpu().fill(flush_->memory.at(), 0, flushed / 4);
  gpu().finish();
  const auto begin = clock::now();
  for (std::uint32_t i = 0; i < flushes; ++i)
    gpu().fill(flush_->memory.at(), static_cast<unsigned char>(i), flushed);
  for (std::size_t i = 0; i < keys.size(); ++i)
    gpu().scramble(input(set, i), plan().input_layouts()[i].bytes(), keys[i]);
  gpu().record(*begins_);
  if (auto passed =
          process().pass_turn(arena().head(), static_cast<std::uint32_t>(call) + 1, deadline);
      !passed)
    return failed(passed.error());
  commit(call);
  gpu().finish();
  return ns_since(begin);
}

program_result<std::vector<call_clock>> gpu_module_session::time(
    std::span<const std::size_t> sets, const std::vector<std::vector<std::uint64_t>>& keys,
    const flush_plan& flushes, time_point deadline) {
  return thawed([&]() -> program_result<std::vector<call_clock>> {
    committed_calls_ = 0;
    if (auto staged = stage(sets, std::exchange(changed_, false), deadline, seed_); !staged)
      return failed(staged.error());
    if (auto begun = process().begin_turns(arena().head(), deadline); !begun)
      return failed(begun.error());
    std::vector<double> intervals;
    for (std::size_t call = 0; call < sets.size(); ++call) {
      const auto interval = turn(call, sets[call], keys[call], flushes.times, deadline);
      if (!interval) return failed(interval.error());
      intervals.push_back(*interval);
    }
    if (auto ended = process().end_turns(deadline); !ended) return failed(ended.error());
    note_scratch_use();
    committed_calls_ = sets.size();
    std::vector<call_clock> clocks;
    for (std::size_t call = 0; call < sets.size(); ++call) {
      // The events of the task's own module are believed. How long a host launches decides about
      // the head start alone.
      const call_clock said = arena().head().call_clocks[call % max_calls];
      if (!std::isfinite(said.launch_ns) || !std::isfinite(said.event_ns) || said.event_ns < 0)
        return failed(Outcome::CRASH, "the record of its times is damaged");
      if (reference_ == nullptr)
        overheads_.emplace_back(flushes.times, intervals[call] - said.event_ns);
      const double ns =
          reference_ == nullptr
              ? said.event_ns
              : std::max(min_call_ns, intervals[call] - reference_->overhead_ns(flushes.times));
      clocks.push_back({ns, ns, std::max(0.0, said.launch_ns), flush_->each_ns});
    }
    while (overheads_.size() > max_overheads) overheads_.pop_front();
    return clocks;
  });
}

double gpu_module_session::overhead_ns(std::uint32_t flushes) const {
  std::vector<double> same;
  std::vector<double> all;
  for (const auto& [times, ns] : overheads_) {
    if (times == flushes) same.push_back(ns);
    all.push_back(ns + (static_cast<double>(flushes) - times) * flush_->each_ns);
  }
  if (!same.empty()) return median(same);
  return all.empty() ? 0 : median(all);
}

program_result<std::vector<gpu_output>> gpu_module_session::outputs(std::size_t call) const {
  return call < committed_calls_ ? committed_[call].outputs : gpu_session::outputs(call);
}

std::set<output_alias> gpu_module_session::aliases(std::size_t call) const {
  auto found = gpu_session::aliases(call);
  std::erase_if(found, [](const output_alias& shared) {
    return shared.what == output_alias::with::earlier_call;
  });
  return found;
}

std::optional<std::string> gpu_module_session::memory_damage() {
  std::vector<gpu_range> ranges;
  const auto guards = plan().guards();
  for (const arena_plan::guard& g : guards)
    ranges.push_back({g.range.begin, g.range.end(), poison_byte});
  const auto first = gpu().find_damage(arena().at(0), ranges);
  if (first) return guards[*first].damage;
  return std::nullopt;
}

}  // namespace hone
