#pragma once

namespace hone {

// SIGINT and SIGTERM end the process from this call on, also one that is the first of a container,
// where they are ignored otherwise. The exit code is 130.
void end_at_stop_signals();

// From this call on they ask the process to finish what it has begun; the second one ends it at
// once, with exit code 130.
void catch_stop_signals();

// Returns true once such a signal has come after catch_stop_signals(). May be called by any thread.
bool was_asked_to_stop();

}  // namespace hone
