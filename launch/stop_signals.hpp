#pragma once

namespace hone {

// From this call on, SIGINT or SIGTERM asks the process to finish what it has begun, and a second
// one ends it at once, with exit code 130.
void catch_stop_signals();

// Returns true once such a signal has come. May be called by any thread.
bool was_asked_to_stop();

}  // namespace hone
