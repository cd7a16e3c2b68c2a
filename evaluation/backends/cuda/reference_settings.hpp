#pragma once

#include "evaluation/backends/cuda/gpu_sessions.hpp"
#include "evaluation/backends/cuda/gpu_task.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// Runs the reference with these settings on the task's current contents, and compares its outputs
// with those that the task expects. Fails if it does not run so. The contents and the expected
// outputs stay as they are.
program_result<agreement> reference_agreement(gpu_sessions& sessions, gpu_task& on_gpu,
                                              const opened_settings& asked);

// Returns true if programs that use TF32 must be right for `large` inputs of the task's current
// case: the task admits TF32, its reference multiplies matrices or convolves, and its outputs for
// such inputs are finite and leave room for rounding to TF32 twice over. Replaces the task's
// contents and expected outputs.
bool bears_large_inputs(gpu_sessions& sessions, gpu_task& on_gpu, random_stream& random);

}  // namespace hone
