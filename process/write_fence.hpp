#pragma once

#include <filesystem>

namespace hone {

// Limits writing to a folder: from now on, the calling thread and the threads that it starts can
// open files for writing, make, rename and remove files beneath `folder` alone. Reading, and files
// that are open already, are not affected. Irrevocable. Returns false, and limits nothing, if the
// kernel cannot do so (Landlock, Linux 5.13). Throws std::system_error if it should and does not.
// Metadata is not covered: forbid chmod and its like by a seccomp filter.
bool confine_writing(const std::filesystem::path& folder);

}  // namespace hone
