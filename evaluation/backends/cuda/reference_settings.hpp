#pragma once

#include <vector>

#include "evaluation/backends/cuda/gpu_sessions.hpp"
#include "evaluation/backends/cuda/gpu_task.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// Runs the reference with these settings on the task's current contents, and compares its outputs
// with those that the task expects. Fails if it does not run so. The contents and the expected
// outputs stay as they are.
program_result<agreement> reference_agreement(gpu_sessions& sessions, gpu_task& on_gpu,
                                              const opened_settings& asked);

// Returns the distributions that checks of the task's current case may use. `large` is one of them
// if programs that use TF32 must be right for such inputs: the task admits TF32, its reference
// multiplies matrices or convolves, and its outputs are finite and leave room for rounding to TF32
// twice over. Replaces the task's contents and expected outputs.
std::vector<distribution> usable_on_gpu(gpu_sessions& sessions, gpu_task& on_gpu,
                                        random_stream& random);

}  // namespace hone
