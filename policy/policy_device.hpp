#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace hone {

// The functions below name a LibTorch device as "cpu", "cuda" (the first GPU) or "cuda:N".

// Sets how LibTorch manages a GPU's memory, unless the user has said it, and the most of it that
// this process takes for the policy. Must be called before the process starts threads.
void set_policy_environment(double share = 1);

// Returns whether two names are of one device.
bool are_same_device(const std::string& a, const std::string& b);

// Makes a device usable: loads LibTorch's CUDA back end for a GPU and does nothing for "cpu".
// Throws policy_error.
void prepare_policy_device(const std::string& device);

// Returns what a failure of a policy's work says, as a sentence: LibTorch adds its call stack.
std::string describe_failure(const std::exception& failure);

// Waits until the device has finished all work that any thread of this process has queued on it;
// only then is a GPU free for another user. The device must have been prepared.
void finish_policy_work(const std::string& device);

// Returns the bytes of a GPU's memory, or 0 for "cpu". The device must have been prepared.
std::uint64_t gpu_memory_of(const std::string& device);

// Returns the bytes of a GPU's memory that are in use, by all processes. The device must have been
// prepared.
std::uint64_t gpu_memory_in_use(const std::string& device);

// Sets the number of threads of LibTorch's CPU operators in this process. Must be called before the
// first operator.
void set_policy_threads(int threads);

// Returns the version of LibTorch that the program was built with: "2.11.0".
std::string torch_version();

}  // namespace hone
