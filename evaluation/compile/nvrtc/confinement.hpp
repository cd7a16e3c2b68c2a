#pragma once

#include <string>
#include <vector>

namespace hone {

// From here on this process and its children read files below `readable` and `own` alone, and write
// below `own` alone, where the kernel knows Landlock (Linux 5.13); elsewhere nothing changes, and
// what a block may include is left to who reads its text.
void confine_files(const std::vector<std::string>& readable, const std::string& own);

}  // namespace hone
