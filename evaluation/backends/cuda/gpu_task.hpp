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
#include "evaluation/judge/evidence.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/oracle.hpp"

namespace hone {

// GPU memory that tasks share, one at a time.
struct gpu_workspace {
  std::optional<task_id> user;
  gpu_tensors inputs;
  gpu_tensors parameters;
  // The outputs of the reference by run (evidence.hpp).
  gpu_tensors own;
  gpu_tensors wide;
  gpu_tensors settled;
  std::vector<gpu_tensors> noisy;
  std::vector<gpu_tensors> alternatives;
  gpu_tensors others;                                 // outputs for other inputs
  gpu_memory data;                                    // contents of the user's data files
  std::map<std::string, std::uint64_t> data_offsets;  // by parameter; empty: not uploaded
  gpu_memory raw;
  gpu_memory dense;
};

// A task on a GPU; the counterpart of input_recipe and reference_oracle. Contents are drawn in the
// GPU memory in which they are used. The reference computes expected outputs in a separate
// process, and they are kept where no candidate's process can map them. Functions throw
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
  void draw_parameters(distribution how, std::uint64_t seed);
  // Writes the parameters that the constructor of the task's own module makes of a seed, into
  // tensors of the case's layouts. Throws reference_error.
  using parameter_constructor = std::function<void(std::uint64_t seed, const gpu_tensors& to)>;
  // Lets draw_parameters() use a constructor, as Python modules do, or none (null).
  void construct_with(parameter_constructor constructor);
  distribution drawn() const { return how_; }  // of the inputs
  const gpu_tensors& inputs() const { return room_->inputs; }
  const gpu_tensors& parameters() const { return room_->parameters; }
  // Draws the same contents into other memory, for timing. That memory must not lie in the
  // reference's arena if draws_with_reference().
  void fill_inputs(const std::vector<CUdeviceptr>& to, distribution how, std::uint64_t seed);
  // Returns true if drawing inputs needs the reference's process, for an `expr`.
  bool draws_with_reference() const;

  // Computes the expected outputs of a call with the current contents, in as many runs as `wanted`
  // says and memory allows.
  void expect(evidence wanted);
  // Adds the runs that `wanted` says to the run in the reference's own types, which the last
  // expect() or expect_outputs_of() has given.
  void gather(evidence wanted);
  // Takes the outputs of a call that the reference's session has made with the current contents,
  // in its own types, as the expected ones.
  void expect_outputs_of(const gpu_session& reference, std::size_t call);
  // Returns the memory that the expected outputs shared with other tensors.
  const std::set<output_alias>& aliases() const { return aliases_; }
  // Returns a bit for each expected output that is row-major.
  std::uint64_t row_major_outputs() const { return row_major_outputs_; }
  // Returns what studies have shown of the reference in the current case.
  const reference_facts& facts() { return facts_[case_]; }
  // Returns true unless the last gather() has found that the reference takes no decisions.
  bool takes_decisions() const { return takes_decisions_; }
  // Returns true if no element of the expected outputs is NaN or infinite.
  bool expects_finite();
  // Returns how outputs for other inputs, of which seeds are drawn from `random`, agree with the
  // expected ones. Replaces the contents and the expected outputs.
  agreement agreement_of_others(random_stream& random);
  const std::vector<tensor_layout>& expected_layouts() const { return room_->own.layouts; }
  // Returns the floating-point operations of the reference's products and convolutions.
  std::uint64_t flops() const { return flops_; }
  // Compares outputs in GPU memory as compare_outputs() does in host memory.
  agreement compare(const std::vector<gpu_output>& actual);

  // Counts uses of the reference's session. Other users of that session must arrange it again when
  // the count has changed.
  std::uint64_t reference_calls() const { return reference_calls_; }

 private:
  gpu_drawing drawing_of(std::size_t tensor, std::uint64_t seed) const;
  void upload_data();
  void draw_one(std::size_t tensor, CUdeviceptr to, distribution how, std::uint64_t seed,
                std::uint64_t perturbation);
  // Runs one of the reference's programs. Its outputs lie in the reference's arena until the next
  // call.
  std::vector<gpu_output> call(std::size_t program, const std::vector<tensor_layout>& inputs,
                               const std::vector<tensor_layout>& parameters,
                               const std::function<void(gpu_session&)>& write);
  void keep(gpu_tensors& to, const std::vector<gpu_output>& outputs);
  // Makes the runs of a study on the current contents and keeps their outputs. Returns true if the
  // reference takes decisions.
  bool study(reference_study study);
  void forget_runs();
  // Returns the most runs with noise, and that decide by themselves, whose outputs are kept.
  std::size_t affordable_runs() const;
  gpu_runs runs_of(std::size_t output) const;
  agreement compare_one(const gpu_output& actual, std::size_t index);

  gpu_context* gpu_;
  gpu_workspace* room_;
  task task_;
  const task_case* case_ = nullptr;
  reference_source reference_;
  parameter_constructor constructor_;
  std::optional<std::uint64_t> constructed_;  // seed of the workspace's parameters
  std::vector<std::size_t> program_of_;       // reference_oracle::program_numbers()
  std::map<const task_case*, reference_facts> facts_;
  distribution how_ = distribution::declared;  // of the current contents
  // The runs that are expected, in addition to the one in the reference's types.
  bool has_wide_ = false;
  bool has_settled_ = false;
  std::size_t noisy_ = 0;
  std::size_t alternatives_ = 0;
  bool takes_decisions_ = true;
  std::set<output_alias> aliases_;
  std::uint64_t row_major_outputs_ = 0;
  std::uint64_t flops_ = 0;
  std::uint64_t reference_calls_ = 0;
};

}  // namespace hone
