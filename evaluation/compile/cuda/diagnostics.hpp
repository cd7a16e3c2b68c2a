#pragma once

#include <string>
#include <string_view>

namespace hone {

// Selects the errors in NVRTC's and ptxas' log and makes them readable: "cuda(12): error: ..."
// becomes "cuda:12: error: ...". The line is the block's own, because the source that NVRTC gets
// begins with `#line 1 "cuda"` (cuda_compiler.cpp). Errors in other files lose their place, and
// quoted text is left out. An error of the assembler in a line of `ptx` is reported for the block's
// line. Returns an empty string if the log has no error. The log is hostile text that is read in
// the judge's process: the time is linear in its length.
std::string tidy_cuda_diagnostics(std::string_view log, std::string_view ptx);

// Returns the first line of a log, without the names of folders, which belong to the machine.
std::string first_log_line(std::string_view log);

}  // namespace hone
