#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/backends/cuda/gpu_sessions.hpp"
#include "evaluation/backends/cuda/gpu_side.hpp"
#include "evaluation/backends/cuda/gpu_task.hpp"
#include "evaluation/judge/process_bias.hpp"
#include "evaluation/judge/timing_rules.hpp"

namespace hone {

// The facts about a case in a pair of processes, found with the reference in both of them.
struct pair_facts {
  process_bias bias;
  // Time of a reference's call timed against itself, as scored, without the bias; 0: unknown.
  double reference_us = 0;
  // Unseen time of the two processes: host-side time per call that the device clock does not show,
  // candidate's process minus reference's process. Nanoseconds. 0 where the two are not compared.
  double unseen_ns = 0;
  // CUPTI shows the reference's work in the candidate's process, or in the reference's where the
  // two are not compared.
  bool can_trace = false;
  bias_precision precision = bias_precision::fine;
};

// The facts about a timed case on a GPU that do not depend on the candidate.
struct case_facts {
  gpu_side::limits limits;
  timing_rules rules;
  std::vector<case_timing::baseline> baselines;
  double reference_call_us = 0;  // median of a few calls, as scored
  double reference_wall_us = 0;  // of a reference's call in a burst
  bool is_launch_bound = false;  // whether the reference is launch-bound
  bool can_trace = false;        // CUPTI shows the reference's work
  std::map<gpu_sessions::process_pair, pair_facts> pairs;
  double module_us = 0;  // of the task's own module, timed by itself; 0: unknown
};

// Returns the limits of a program that asks for these settings. To capture a CUDA graph takes the
// host as long as a launch-bound call does. Where that is long, one input set is enough, so that
// calls with the same parameters replay the same graph. `tunes`: its first call may try algorithms.
gpu_side::limits limits_with(const settings& asked, bool tunes, const case_facts& facts);

// A task on a GPU with the facts of its cases.
struct prepared_gpu_task {
  prepared_gpu_task(gpu_context& gpu, gpu_workspace& room, const task& t,
                    gpu_task::reference_source reference)
      : on_gpu(gpu, room, t, std::move(reference)) {}
  const task& of() const { return on_gpu.of(); }

  gpu_task on_gpu;
  random_stream random{random_bits()};
  std::map<std::string, case_facts> cases;                  // by sizes, as printed
  std::map<std::string, std::vector<distribution>> usable;  // likewise
};

// Least duration of a burst in nanoseconds.
inline constexpr double burst_ns = 3e6;

// Converts a time of a whole burst to microseconds per call.
double us_per_call(double ns, const burst_clock& burst);

// Finds the facts about a case that do not depend on the candidate: the number of calls that fit
// into memory, the baselines, whether the reference is launch-bound, and the bias between two
// processes. Functions throw reference_error. Confined to one thread. Everything passed by
// reference, except `facts`, must outlive the calibrator.
class gpu_calibrator {
 public:
  // As in cuda_judge_options.
  struct calibration_options {
    std::chrono::milliseconds call_limit;
    bool baselines;
    std::filesystem::path compiled_references;
  };
  gpu_calibrator(gpu_context& gpu, gpu_sessions& sessions, const gpu_facts& facts,
                 calibration_options options)
      : gpu_(&gpu), sessions_(&sessions), facts_(facts), options_(std::move(options)) {}

  // Selects a case of the task and returns its facts, including those of the current processes for
  // candidates of role `in` and for references. Facts that are known as precisely as `wanted` are
  // not measured again. May replace a process whose bias is implausible. The result lives as long
  // as `prepared`.
  const case_facts& calibrate(prepared_gpu_task& prepared, const task_case& at,
                              gpu_sessions::role in, bias_precision wanted, random_stream& random);

  // Selects a case and returns its facts without those of processes.
  case_facts& facts_of(prepared_gpu_task& prepared, const task_case& at, random_stream& random);
  // Returns the microseconds of a call of the task's own module by itself, as it is timed.
  double time_alone(prepared_gpu_task& prepared, gpu_session& session, const case_facts& facts,
                    random_stream& random);

 private:
  case_facts calibrate_case(prepared_gpu_task& prepared, const task_case& at,
                            random_stream& random);
  gpu_side::limits limits_of(gpu_task& on_gpu, random_stream& random) const;
  std::vector<case_timing::baseline> time_baselines(prepared_gpu_task& prepared,
                                                    const task_case& at, const case_facts& facts,
                                                    random_stream& random);
  double time_baseline(prepared_gpu_task& prepared, const opened_settings& asked,
                       const gpu_side::limits& limits, random_stream& random);
  std::optional<std::string> disagreement(prepared_gpu_task& prepared, const opened_settings& asked,
                                          random_stream& random);
  void time_reference(prepared_gpu_task& prepared, case_facts& facts, random_stream& random);
  void calibrate_pair(prepared_gpu_task& prepared, case_facts& facts, gpu_sessions::role in,
                      bias_precision wanted, random_stream& random);
  pair_facts compare_processes(prepared_gpu_task& prepared, const case_facts& facts,
                               gpu_sessions::role in, bias_precision wanted, random_stream& random);
  void replace_one_of_pair(gpu_sessions::role in, int attempt);

  gpu_context* gpu_;
  gpu_sessions* sessions_;
  gpu_facts facts_;
  calibration_options options_;
};

}  // namespace hone
