#pragma once

#include <memory>
#include <optional>
#include <string>

#include "evaluation/cuda/gpus.hpp"
#include "evaluation/cuda/management.hpp"
#include "evaluation/devices/case_facts.hpp"
#include "evaluation/devices/gpu_processes.hpp"
#include "evaluation/devices/program_judge.hpp"
#include "evaluation/devices/task_cache.hpp"
#include "evaluation/judge/gpu/gpu_task.hpp"
#include "tasks/settings.hpp"

namespace hone {

struct cuda_judge_options {
  int core = -1;  // that its processes launch from, which take turns: what is compared must not
                  // differ by its core. -1: any
  std::uint64_t arena_bytes =
      0;  // of each of the two; 0: a sixth of the GPU's memory, 16 GiB at most
  std::chrono::milliseconds call_limit{
      2000};  // one call that takes longer is a timeout (evaluation.md section 3, point 6)
};

// The judge on a GPU: contents are drawn and outputs compared where they lie, by the judge's own
// context; candidates run in processes of their own and references in another, which alternate. One
// thread, which must be the one that made it.
class cuda_judge final : public program_judge {
 public:
  cuda_judge(const gpu_facts& facts, const cuda_judge_options& options);
  ~cuda_judge() override;

  verification_result verify(const schema::Artifact::Reader& artifact, const task& t,
                             std::uint64_t& seed) override;
  timed_program time(const schema::Artifact::Reader& artifact, const task& t, random_stream& random,
                     int earlier) override;
  std::vector<std::string> check_task(const task& t) override;
  void forget(const task& t) override;
  double clock_mhz() const override { return management_.clock_mhz(); }
  double temperature_c() const override { return management_.temperature_c(); }
  std::string toolchain() const override { return kernels_.toolchain; }
  std::string driver() const override { return facts_.driver; }

 private:
  // The judge's own kernels, compiled for this GPU.
  struct own_kernels {
    std::string toolchain;
    compiled_block block;
    static own_kernels compile_for(const std::string& architecture);
  };
  using role = gpu_processes::role;
  struct prepared_task;
  prepared_task& prepare(const task& t);
  std::optional<program_failure> open_candidate(role in, const schema::Artifact::Reader& artifact,
                                                const task& t);
  gpu_session& reference_of(const task& t);  // with the settings of the moment
  // Chooses a case, and everything about it that does not depend on the candidate: calls that fit
  // into memory, baselines, how fast references follow each other, and what its processes differ
  // by.
  const case_facts& learn(prepared_task& prepared, const task_case& at, role in,
                          random_stream& random);
  case_facts learn_case(prepared_task& prepared, random_stream& random);
  std::vector<case_timing::baseline> time_baselines(prepared_task& prepared,
                                                    const case_facts& facts, random_stream& random);
  void time_reference_trains(prepared_task& prepared, case_facts& facts, random_stream& random);
  void learn_pair(prepared_task& prepared, case_facts& facts, role in, random_stream& random);
  pair_facts compare_processes(prepared_task& prepared, const case_facts& facts, role in,
                               random_stream& random);
  void replace_one_of_pair(role in, int attempt);
  void replace_candidate(role in);
  case_timing time_beyond_doubt(prepared_task& prepared, const task_case& at, role in,
                                const case_facts& facts, const pair_facts& pair,
                                random_stream& random);
  case_timing time_case(prepared_task& prepared, const task_case& at, const case_facts& facts,
                        const pair_facts& pair, random_stream& random);
  program_failure look_at_candidate(gpu_task& on_gpu, const gpu_side& candidate, std::size_t call,
                                    verification_result& totals);
  program_failure judge_slowed_reference(prepared_task& prepared, const task_case& at, role in,
                                         double reference_us, random_stream& random);

  gpu_facts facts_;
  cuda_judge_options options_;
  unique_fd core_lock_;
  gpu_management management_;
  own_kernels kernels_;
  judge_gpu gpu_;
  gpu_arena candidate_arena_;
  gpu_arena reference_arena_;
  gpu_processes processes_;
  struct opened_reference {
    task_id of;
    settings asked;
    std::uint64_t process = 0;  // its serial number
    bool operator==(const opened_reference&) const = default;
  };
  std::optional<opened_reference> open_reference_;
  settings reference_settings_;  // with which references run: others than the default for baselines
                                 // alone
  std::optional<gpu_session> candidate_session_;
  std::optional<gpu_session> reference_session_;
  gpu_workspace room_;
  task_cache<prepared_task> prepared_;
};

}  // namespace hone
