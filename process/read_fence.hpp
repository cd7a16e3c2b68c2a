#pragma once

#include <filesystem>
#include <vector>

#include "process/unique_fd.hpp"

namespace hone {

// Returns the rules (Landlock, Linux 5.13) that limit reading and executing to these files and what
// lies beneath these folders; those that do not exist are left out. child_options::read_fence
// applies them. Empty if the kernel has no Landlock. Writing is not covered. Throws
// std::system_error.
unique_fd make_read_fence(const std::vector<std::filesystem::path>& readable);

// Adds the facts about the calling process, /proc/self, to a fence. Returns false if that fails.
// May be called between fork and exec. Processes that the fence confines later may read them as
// well.
bool admit_own_facts(int fence);

// Returns the files and folders that a Python interpreter reads: its own environment, those of the
// interpreter that this was made from, the system's libraries, facts about the machine, and sources
// of randomness. Processes in /proc are not among them.
std::vector<std::filesystem::path> files_of_python(const std::filesystem::path& python);

}  // namespace hone
