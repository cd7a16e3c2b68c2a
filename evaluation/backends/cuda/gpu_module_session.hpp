#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/backends/cuda/gpu_session.hpp"

namespace hone {

// Memory that the judge writes to flush the L2 cache.
struct flush_memory {
  gpu_memory memory;   // several times the cache
  double each_ns = 0;  // of one flush
};

// A session of a Python module on a GPU. Nothing that its process says is believed, and no key
// enters it. A timed call lasts from the moment before the judge makes its inputs readable to the
// moment when the judge has copied its outputs, by the judge's clock. The same interval of the
// task's own module, whose process is trusted and has events, shows what that takes in addition.
// Parameters come from the seed of a constructor. Confined to one thread.
class gpu_module_session final : public gpu_session {
 public:
  // `begins`: the event that the process waits for before a call. `reference`: the session of the
  // task's own module, whose overhead a candidate's calls have; null for that session. Everything
  // passed must outlive the session.
  gpu_module_session(gpu_context& gpu, gpu_arena& arena, gpu_process& process,
                     const gpu_event& begins, const flush_memory& flush,
                     const gpu_module_session* reference)
      : gpu_session(gpu, arena, process), begins_(&begins), flush_(&flush), reference_(reference) {}

  // Another seed makes another instance of the module.
  void write_parameters(const gpu_tensors& from, std::uint64_t seed) override;
  // A module that changes its parameters gives wrong results.
  bool parameters_hold(const gpu_tensors& /*written*/) const override { return true; }
  // An instance may capture, compile or choose algorithms in its first call.
  bool warms_up() const override { return true; }
  program_result<void> prepare(time_point deadline) override;
  program_result<void> run(std::span<const std::size_t> sets, time_point deadline) override;
  // The clocks of a candidate have times that `reference` would have had by events.
  program_result<std::vector<call_clock>> time(std::span<const std::size_t> sets,
                                               const std::vector<std::vector<std::uint64_t>>& keys,
                                               const flush_plan& flushes,
                                               time_point deadline) override;
  program_result<std::vector<gpu_output>> outputs(std::size_t call) const override;
  // Memory of earlier calls is the module's own.
  std::set<output_alias> aliases(std::size_t call) const override;
  std::optional<std::string> memory_damage() override;

  // Of the task's own module: makes an instance and copies the task's parameters to `to`.
  program_result<void> construct(std::uint64_t seed, const gpu_tensors& to, time_point deadline);
  // Of the task's own module: returns by how much the judge's interval of a call was longer than
  // the call, in nanoseconds; 0 if no call has been timed.
  double overhead_ns(std::uint32_t flushes) const;

 private:
  struct committed_call {
    program_result<std::vector<gpu_output>> outputs;
    std::vector<gpu_memory> memory;
  };
  template <class Work>
  auto thawed(Work&& work) -> decltype(work());
  void commit(std::size_t call);
  program_result<double> turn(std::size_t call, std::size_t set,
                              const std::vector<std::uint64_t>& keys, std::uint32_t flushes,
                              time_point deadline);

  const gpu_event* begins_;
  const flush_memory* flush_;
  const gpu_module_session* reference_;
  std::uint64_t seed_ = 0;
  bool changed_ = true;
  std::size_t committed_calls_ = 0;        // of the last run; 0: its outputs are in the arena
  std::vector<committed_call> committed_;  // by call; memory stays for later runs
  std::deque<std::pair<std::uint32_t, double>> overheads_;  // flushes, and nanoseconds
};

}  // namespace hone
