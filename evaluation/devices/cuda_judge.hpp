#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "evaluation/cuda/gpus.hpp"
#include "evaluation/cuda/management.hpp"
#include "evaluation/devices/gpu_session.hpp"
#include "evaluation/devices/program_judge.hpp"
#include "evaluation/judge/gpu/gpu_task.hpp"
#include "evaluation/judge/paired_rounds.hpp"
#include "tasks/settings.hpp"

namespace hone {

struct cuda_judge_options {
  std::uint64_t arena_bytes = 0;  // of each of the two; 0: a sixth of the GPU's memory, 16 GiB at most
  std::chrono::milliseconds call_limit{2000};  // one call that takes longer is a timeout (evaluation.md section 3, point 6)
};

// The judge on a GPU: contents are drawn and outputs compared where they lie, by the judge's own context; candidates run in one process,
// references in another, which alternate. There are two processes for candidates: what one of them measured, the other confirms, which has
// not seen the variant. One that dies, hangs or has its context lost is replaced by a spare that was made ready beforehand. One thread,
// which must be the one that made it.
class cuda_judge final : public program_judge {
 public:
  cuda_judge(const gpu_facts& facts, const cuda_judge_options& options);
  ~cuda_judge() override;

  verification_result verify(const schema::Artifact::Reader& artifact, const task& t, std::uint64_t& seed) override;
  timed_program time(const schema::Artifact::Reader& artifact, const task& t, random_stream& random, bool fresh) override;
  std::vector<std::string> check_task(const task& t) override;
  void forget(const task& t) override;
  double reverify_agreement() const override;
  double clock_mhz() const override { return management_.clock_mhz(); }
  std::string toolchain() const override { return toolchain_; }
  std::string driver() const override { return facts_.driver; }

 private:
  struct prepared_task;
  prepared_task& prepare(const task& t);
  std::unique_ptr<gpu_process> start(const gpu_arena& arena) const;
  gpu_process& candidate() { return *candidates_[current_]; }
  void replace_candidate();
  std::optional<program_failure> open_candidate(const schema::Artifact::Reader& artifact, const task& t);
  gpu_session& reference_of(const task& t, const settings& asked);
  struct case_facts;
  // Everything about a case that does not depend on the candidate: calls that fit into memory, baselines, and the bias of the two processes.
  const case_facts& learn(prepared_task& prepared, const task_case& at, random_stream& random);
  process_bias find_bias(prepared_task& prepared, const case_facts& facts, random_stream& random);
  std::vector<case_timing::baseline> time_baselines(prepared_task& prepared, const case_facts& facts, random_stream& random);
  case_timing time_case(prepared_task& prepared, const task_case& at, const case_facts& facts, random_stream& random);
  double floor_us(std::uint64_t bytes) const;

  gpu_facts facts_;
  std::string toolchain_;
  compiled_block kernels_;
  cuda_judge_options options_;
  int core_;
  gpu_management management_;
  judge_gpu gpu_;
  gpu_arena candidate_arena_;
  gpu_arena reference_arena_;
  std::array<std::unique_ptr<gpu_process>, 2> candidates_;
  std::size_t current_ = 0;
  std::unique_ptr<gpu_process> spare_;  // starts while others work
  std::unique_ptr<gpu_process> reference_;
  std::optional<std::pair<task_id, settings>> open_reference_;
  settings reference_settings_;  // with which references run: others than the default for baselines alone
  std::optional<gpu_session> candidate_session_;
  std::optional<gpu_session> reference_session_;
  std::list<std::unique_ptr<prepared_task>> prepared_;  // most recently used first
};

}  // namespace hone
