#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluation/backends/cuda/gpu_context.hpp"
#include "evaluation/backends/cuda/gpu_session.hpp"
#include "evaluation/judge/comparison.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/oracle.hpp"

namespace hone {

// GPU memory that tasks share, one at a time.
struct gpu_workspace {
  std::optional<task_id> user;
  gpu_tensors inputs;
  gpu_tensors parameters;
  gpu_tensors own;                                    // the reference's outputs in its own types
  gpu_tensors wide;                                   // the reference's outputs in float64
  gpu_memory data;                                    // contents of the user's data files
  std::map<std::string, std::uint64_t> data_offsets;  // by parameter; empty: not uploaded
  gpu_memory raw;
  gpu_memory dense;
};

// A task on a GPU; the counterpart of input_recipe and reference_oracle. Contents are drawn in the
// GPU memory in which they are used. The reference computes expected outputs in a process of its
// own, and they are kept where no candidate's process can map them. Functions throw
// reference_error. Confined to one thread. The context and the workspace must outlive it.
class gpu_task {
 public:
  // Returns a session in the reference's process in which reference_oracle::programs() of the task
  // are open. Throws reference_error.
  using reference_source = std::function<gpu_session&(const task&)>;
  gpu_task(gpu_context& gpu, gpu_workspace& room, task t, reference_source reference);

  const task& of() const { return task_; }
  // Selects the case to which all functions below refer. The choice holds until another task uses
  // the workspace.
  void choose(const task_case& at);
  const task_case& at() const { return *case_; }

  // Draw the contents that belong to a seed into the workspace, optionally perturbed. They stay
  // until the next draw.
  void draw_inputs(distribution how, std::uint64_t seed, std::uint64_t perturbation = 0);
  void draw_parameters(std::uint64_t seed);
  const gpu_tensors& inputs() const { return room_->inputs; }
  const gpu_tensors& parameters() const { return room_->parameters; }
  // Draws the same contents into other memory, for timing. That memory must not lie in the
  // reference's arena if draws_with_reference().
  void fill_inputs(const std::vector<CUdeviceptr>& to, distribution how, std::uint64_t seed);
  // Returns true if drawing inputs needs the reference's process, for an `expr`.
  bool draws_with_reference() const;

  // Computes the expected outputs of a call with the current contents.
  void expect(exactness how = exactness::float64);
  // Takes the outputs of a call that the reference's session has made with the current contents,
  // in its own types, as the expected ones.
  void expect_outputs_of(const gpu_session& reference, std::size_t call);
  // Returns the memory that the expected outputs shared with other tensors.
  const std::set<output_alias>& aliases() const { return aliases_; }
  // Returns a bit for each expected output that is row-major.
  std::uint64_t row_major_outputs() const { return row_major_outputs_; }
  // Returns true if the expected outputs were computed in float64 as well.
  bool has_wide() const { return has_wide_; }
  // Returns true if no element of the expected outputs is NaN or infinite.
  bool expects_finite();
  // Returns the largest inexactness_of_reference() of the expected outputs.
  double reference_inexactness();
  const std::vector<tensor_layout>& expected_layouts() const { return room_->own.layouts; }
  // Returns the floating-point operations of the reference's products and convolutions.
  std::uint64_t flops() const { return flops_; }
  // Compares outputs in GPU memory as compare_outputs() does in host memory.
  agreement compare(const std::vector<gpu_output>& actual);

  // Counts uses of the reference's session. Other users of that session must arrange it again when
  // the count has changed.
  std::uint64_t reference_calls() const { return reference_calls_; }

 private:
  gpu_drawing drawing_of(std::size_t tensor, distribution how, std::uint64_t seed) const;
  void upload_data();
  void draw_one(std::size_t tensor, CUdeviceptr to, distribution how, std::uint64_t seed,
                std::uint64_t perturbation);
  // Runs one of the reference's programs. Its outputs lie in the reference's arena until the next
  // call.
  std::vector<gpu_output> call(std::size_t program, const std::vector<tensor_layout>& inputs,
                               const std::vector<tensor_layout>& parameters,
                               const std::function<void(gpu_session&)>& write);
  std::vector<gpu_output> call_in_float64();
  void keep(gpu_tensors& to, const std::vector<gpu_output>& outputs);
  // Returns the float64 run's output, or 0 if there is none of type float64.
  CUdeviceptr wide_of(std::size_t output) const;
  agreement compare_one(const gpu_output& actual, std::size_t index);

  gpu_context* gpu_;
  gpu_workspace* room_;
  task task_;
  const task_case* case_ = nullptr;
  reference_source reference_;
  std::vector<std::size_t> program_of_;      // reference_oracle::program_numbers()
  std::set<const task_case*> without_wide_;  // cases in which float64 is impossible
  bool has_wide_ = false;
  std::set<output_alias> aliases_;
  std::uint64_t row_major_outputs_ = 0;
  std::uint64_t flops_ = 0;
  std::uint64_t reference_calls_ = 0;
};

}  // namespace hone
