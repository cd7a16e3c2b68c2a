#pragma once

#include <linux/filter.h>

#include <vector>

namespace hone {

// A seccomp program in BPF, to be installed by child_options or install_filter().
using seccomp_program = std::vector<sock_filter>;

// Returns a filter for a tool that reads hostile text from standard input: it forbids sockets,
// tracing and opening files that a source names. GCC opens these files, and no others, with
// O_NOCTTY.
const seccomp_program& toolchain_filter();

// Returns a filter for a process that runs untrusted Python: the process can open no file for
// writing, change no file, start or signal no process, and reach no network. It may read files,
// allocate memory and start threads.
const seccomp_program& reader_filter();

// Returns the same filter without its rules on files that are opened, made, renamed and removed,
// for a process whose writing confine_writing() limits to a folder.
const seccomp_program& fenced_writer_filter();

// Returns a filter that adds to others: a process with it gets no signals of timers, so that a
// process of one thread which waits does nothing else, and it cannot watch what others do to files.
const seccomp_program& secluding_filter();

// Returns a filter for a process that reads no file by its name (visible_files.hpp). Calls that
// NVRTC and the C library make with a path trap (SIGSYS). Calls for memory, time, threads, open
// descriptors and the process's own limits are admitted, and all others do not exist (ENOSYS). Made
// by the process for itself, because it may signal itself.
seccomp_program nameless_filter();

// Installs a filter in all threads of the process, irrevocably. Throws std::system_error.
void install_filter(const seccomp_program& filter);

}  // namespace hone
