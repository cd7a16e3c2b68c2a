#pragma once

#include <string>
#include <vector>

namespace hone {

// Restricts this process and its children, irrevocably, to reading files below `readable` and `own`
// and to writing below `own`. Requires Landlock (Linux 5.13). On older kernels nothing changes, and
// only the check of a block's text limits the files that it includes. Throws std::system_error.
void confine_files(const std::vector<std::string>& readable, const std::string& own);

}  // namespace hone
