#pragma once

namespace hone {

// The purpose of a thread that does not process actor messages.
enum class thread_work { run, strangers_and_files };

// Lowers the priority of the calling thread, and of threads and processes that it starts, so that
// messages of actors go first: a little for the run's own work, more for connections of strangers
// and copies of files. Both count from the priority of the process's first thread, on which this
// has no effect. Linux only; needs no privilege.
void let_messages_pass(thread_work work);

}  // namespace hone
