#pragma once

#include <string>

namespace hone {

// Returns CUDA C++ for g++: the text in front of every cuda block on the CPU device, which declares
// everything that a block may use there. It is the concatenation of the files in cuda_on_cpu/. The
// text includes nothing, so that the preprocessor needs no file at all, and compiles with
// -nostdinc. Safe on any thread.
const std::string& cuda_on_cpu();

}  // namespace hone
