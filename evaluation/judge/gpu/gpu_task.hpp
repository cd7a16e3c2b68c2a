#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluation/judge/comparison.hpp"
#include "evaluation/judge/gpu/gpu_session.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/oracle.hpp"

namespace hone {

// What tasks work in, one at a time.
struct gpu_workspace {
  std::optional<task_id> user;
  gpu_tensors inputs;
  gpu_tensors parameters;
  gpu_tensors own;                         // what the reference gives
  gpu_tensors wide;                        // and in float64
  std::map<std::string, gpu_memory> data;  // of the user's data files, by parameter
  gpu_memory raw;
  gpu_memory dense;
};

// A task on a GPU: what its cases are called with, drawn where it is used, and what is right,
// computed by the reference in a process of its own and kept where no candidate's process can map
// it. The GPU's counterpart of input_recipe and reference_oracle. One thread.
class gpu_task {
 public:
  // A session in the reference's process with reference_oracle::programs() of the task open; throws
  // reference_error.
  using reference_source = std::function<gpu_session&(const task&)>;
  gpu_task(judge_gpu& gpu, gpu_workspace& room, task t, reference_source reference);

  const task& of() const { return task_; }
  // From here on it is about this case, until another task uses the workspace.
  void choose(const task_case& at);

  // Contents that belong to a seed, the same every time; with a twist a few elements differ. They
  // stay until the next.
  void draw_inputs(distribution how, std::uint64_t seed, std::uint64_t twist = 0);
  void draw_inputs_with_an_outlier(std::uint64_t seed, bool mirrored);
  void draw_parameters(std::uint64_t seed);
  const gpu_tensors& inputs() const { return room_->inputs; }
  const gpu_tensors& parameters() const { return room_->parameters; }
  // The same contents somewhere else, for timing. Where drawing takes the reference's process (an
  // `expr`), not in its own arena.
  void fill_inputs(const std::vector<CUdeviceptr>& to, distribution how, std::uint64_t seed);
  bool draws_with_reference() const;

  // What a call with the current contents must give.
  void expect(exactness how = exactness::float64);
  const std::set<shared_memory_of_output>& aliases() const { return aliases_; }
  // Whether every output has a float64 run to be held against.
  bool has_wide() const { return has_wide_; }
  // The largest inexactness_of_reference() of its outputs.
  double reference_inexactness();
  const std::vector<tensor_layout>& expected_layouts() const { return room_->own.layouts; }
  // Floating-point operations of the products and convolutions that the reference makes.
  std::uint64_t flops() const { return flops_; }
  // Number, shapes and types first, then every output, as compare_outputs() does.
  agreement compare(const std::vector<gpu_output>& actual);

  // How often the reference's session has been used here: whoever else uses it must arrange it
  // again.
  std::uint64_t reference_calls() const { return reference_calls_; }

 private:
  gpu_drawing drawing_of(std::size_t tensor, distribution how, std::uint64_t seed) const;
  void draw_one(std::size_t tensor, CUdeviceptr to, distribution how, std::uint64_t seed,
                std::uint64_t twist);
  // Runs one of the reference's programs; its outputs lie in the reference's arena until the next.
  std::vector<gpu_output> call(std::size_t program, const std::vector<tensor_layout>& inputs,
                               const std::vector<tensor_layout>& parameters,
                               const std::function<void(gpu_session&)>& write);
  void keep(gpu_tensors& to, const std::vector<gpu_output>& outputs);
  CUdeviceptr wide_of(std::size_t output) const;  // 0: there is none in float64
  agreement compare_one(const gpu_output& actual, std::size_t index);

  judge_gpu* gpu_;
  gpu_workspace* room_;
  task task_;
  const task_case* case_ = nullptr;
  reference_source reference_;
  std::vector<std::size_t> program_of_;      // by tensor, inputs first; 0: none
  std::set<const task_case*> without_wide_;  // where the reference does not run in float64
  bool has_wide_ = false;
  std::set<shared_memory_of_output> aliases_;
  std::uint64_t flops_ = 0;
  std::uint64_t reference_calls_ = 0;
};

}  // namespace hone
