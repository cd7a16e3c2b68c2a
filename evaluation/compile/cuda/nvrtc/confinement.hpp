#pragma once

#include <string>
#include <vector>

namespace hone {

// Restricts this process and its children, irrevocably, to reading files below `readable` and `own`
// and to writing below `own`. Needs Landlock (Linux 5.13); on older kernels nothing changes, and only
// the check of a block's text limits what it includes. Throws std::system_error.
void confine_files(const std::vector<std::string>& readable, const std::string& own);

}  // namespace hone
