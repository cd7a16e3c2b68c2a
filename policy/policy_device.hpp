#pragma once

#include <string>

namespace hone {

// Where networks run: "cpu", "cuda" (the first GPU) or "cuda:N".

// Makes a device of LibTorch usable: "cpu" always is, a GPU loads the CUDA back end. Throws
// policy_error.
void prepare_policy_device(const std::string& device);

// Waits until the device has done what any thread has asked it for so far; before that, a GPU is
// not free for anyone else. The device must have been prepared.
void finish_policy_work(const std::string& device);

// Threads that LibTorch's CPU operators use in this process. Before the first operator.
void set_policy_threads(int threads);

}  // namespace hone
