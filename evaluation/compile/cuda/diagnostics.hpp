#pragma once

#include <string>
#include <string_view>

namespace hone {

// Selects the errors of NVRTC's and ptxas' log that concern a cuda block and makes them readable:
// "cuda(12): error: ..." becomes "cuda:12: error: ...". What is said of other files, and quoted text,
// is left out; what the assembler says of a line of `ptx` is said of the block's line. Returns an empty
// string if the log names no error.
std::string tidy_cuda_diagnostics(const std::string& log, std::string_view ptx);

// Returns the first line of a log without names of folders, which are the machine's.
std::string first_log_line(const std::string& log);

}  // namespace hone
