#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/backends/cpu/cpu_processes.hpp"
#include "evaluation/backends/program_judge.hpp"
#include "evaluation/backends/task_cache.hpp"
#include "evaluation/judge/timing_rules.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// Judges programs whose tensors lie in host memory, on one processor core. The judge's own process
// draws contents and compares outputs, and runs are timed by the program's processor time. Confined
// to one thread.
class cpu_judge final : public program_judge {
 public:
  // `core_lock` is held while the judge lives; empty if the core is shared. A call that takes
  // longer than `call_limit` is a timeout.
  cpu_judge(int core, unique_fd core_lock, std::chrono::milliseconds call_limit);
  ~cpu_judge() override;

  std::string kind() const override { return "cpu"; }
  verification_result verify(const schema::Artifact::Reader& artifact, const task& t,
                             std::uint64_t& seed) override;
  program_result<void> begin_timing(const schema::Artifact::Reader& artifact, const task& t,
                                    const std::vector<wanted_timing>& cases, int earlier,
                                    time_budget& budget, random_stream& random) override;
  case_timing time_case(const wanted_timing& wanted, random_stream& random) override;
  void end_timing() override;
  double reverify_agreement() const override { return rules_.reverify_agreement; }
  std::vector<std::string> check_task(const task& t) override;
  void forget(const task& t) override;
  double clock_mhz() const override;
  std::string toolchain() const override;
  std::string driver() const override { return "linux"; }

 private:
  struct prepared_task;
  prepared_task& prepare(const task& t);

  int core_;
  unique_fd core_lock_;
  std::chrono::milliseconds call_limit_;
  timing_rules rules_ = cpu_timing_rules();
  double floor_us_per_byte_;
  cpu_processes processes_;
  task_cache<prepared_task> prepared_;
  // Set from begin_timing() to end_timing().
  prepared_task* timed_ = nullptr;
  time_budget* budget_ = nullptr;
  bool times_module_ = false;  // the candidate is a Python module
  std::unique_ptr<program_session> candidate_;
  std::unique_ptr<program_session> reference_;
};

}  // namespace hone
