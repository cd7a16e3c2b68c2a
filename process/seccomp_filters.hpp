#pragma once

#include <linux/filter.h>

#include <vector>

namespace hone {

// Seccomp programs, to be installed by child_options or install_filter().
using seccomp_program = std::vector<sock_filter>;

// Filters a tool that reads hostile text from standard input: no sockets, no tracing, and no source
// file can be opened. GCC opens every file that a source names with O_NOCTTY, and no other file.
const seccomp_program& toolchain_filter();

// Filters a process that runs untrusted Python: it opens nothing for writing, changes no file,
// starts and signals no process, and reaches no network. Reading files, memory and its own threads
// stay allowed.
const seccomp_program& reader_filter();

// Installs a filter in this process, irrevocably. Throws std::system_error.
void install_filter(const seccomp_program& filter);

}  // namespace hone
