#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gpus.hpp"
#include "cuda/management.hpp"
#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cuda/gpu_calibration.hpp"
#include "evaluation/backends/cuda/gpu_modules.hpp"
#include "evaluation/backends/cuda/gpu_sessions.hpp"
#include "evaluation/backends/cuda/own_kernels.hpp"
#include "evaluation/backends/program_judge.hpp"
#include "evaluation/backends/task_cache.hpp"
#include "process/unique_fd.hpp"

namespace hone {

struct cuda_judge_options {
  bool locks_gpu = false;       // no other process of Hone may judge on it meanwhile
  early_lock kept_lock{};       // of the GPU, for the first judge that is made
  reserved_core launch_core{};  // the core from which all of the GPU's processes launch
  // Size of each of the two arenas; 0: a quarter of the GPU's memory, at most 40 GiB.
  std::uint64_t arena_bytes = 0;
  // Processes that are started beforehand to replace others. 0: there are few variants to judge,
  // and all of them wait for the start.
  std::size_t spares = 3;
  bool baselines = true;  // time each reference in other ways than eager as well
  // Folder of compiled references (tasks/compiling/), which are timed as the baseline `inductor`;
  // empty: none.
  std::filesystem::path compiled_references{};
  // Folder in which the driver keeps what it compiles for references, which later judges on this
  // GPU use; empty: nothing is kept.
  std::filesystem::path driver_cache{};
  // A call that takes longer is a timeout (evaluation.md section 3, point 6).
  std::chrono::milliseconds call_limit{2000};
};

// Judges programs on a GPU. The judge's own context draws inputs and compares outputs in the GPU
// memory that they lie in. Candidates and references run in separate processes, which take turns.
// Python modules have processes for themselves, and the judge's own clock.
// Confined to the thread that made it.
class cuda_judge final : public program_judge {
 public:
  cuda_judge(const gpu_facts& facts, const cuda_judge_options& options);
  ~cuda_judge() override;

  std::string kind() const override { return "cuda"; }
  verification_result verify(const schema::Artifact::Reader& artifact, const task& t,
                             std::uint64_t& seed) override;
  program_result<void> begin_timing(const schema::Artifact::Reader& artifact, const task& t,
                                    const std::vector<wanted_timing>& cases, int earlier,
                                    time_budget& budget, random_stream& random) override;
  case_timing time_case(const wanted_timing& wanted, random_stream& random) override;
  double reverify_agreement() const override { return reverify_agreement_; }
  std::vector<std::string> check_task(const task& t) override;
  void end_timing() override { modules_.end_candidate(); }
  void forget(const task& t) override;
  double clock_mhz() const override { return management_.clock_mhz(); }
  double temperature_c() const override { return management_.temperature_c(); }
  std::string toolchain() const override { return kernels_.toolchain(); }
  std::string driver() const override { return facts_.driver; }

 private:
  using role = gpu_sessions::role;
  // The candidate that is being timed, set by begin_timing().
  struct timed_candidate {
    schema::Artifact::Reader artifact;
    prepared_gpu_task* prepared = nullptr;
    role in = role::timing;
    time_budget* budget = nullptr;
    gpu_session* module = nullptr;  // the session of a Python module; null: another program
  };

  prepared_gpu_task& prepare(const task& t);
  // Returns usable_on_gpu() for the task's current case, which is found out once.
  const std::vector<distribution>& usable_of(prepared_gpu_task& prepared);
  std::vector<distribution> usable_of_modules(prepared_gpu_task& prepared);
  // Lets the task's parameters be drawn as programs of this kind have them.
  void draw_parameters_for(prepared_gpu_task& prepared, bool of_module);
  program_result<void> begin_timing_module(const std::vector<wanted_timing>& cases,
                                           random_stream& random);
  case_timing time_module(const wanted_timing& wanted, random_stream& random);
  case_timing time_undisturbed(gpu_session& candidate, const wanted_timing& wanted,
                               const case_facts& facts, const pair_facts& pair,
                               random_stream& random);
  std::optional<program_failure> judge_slowed_reference(const task_case& at, double reference_us,
                                                        random_stream& random);

  gpu_facts facts_;
  std::chrono::milliseconds call_limit_;
  unique_fd gpu_lock_;
  unique_fd core_lock_;
  gpu_management management_;
  // While the processes start, the judge's kernels are compiled and its context is made.
  gpu_processes processes_;
  own_kernels kernels_;
  gpu_context gpu_;
  gpu_sessions sessions_;
  gpu_modules modules_;
  gpu_calibrator calibrator_;
  gpu_workspace room_;
  task_cache<prepared_gpu_task> prepared_;
  timed_candidate timed_;
  bool has_timed_ = false;
  double reverify_agreement_ = 0;  // of the last timed case
};

}  // namespace hone
