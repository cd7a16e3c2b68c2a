#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "process/unique_fd.hpp"

namespace hone {

// Locks on files (flock). A lock belongs to the open file: it ends when the descriptor is closed,
// also by the end of its process, so that none is left behind. Who asks for a lock that it holds
// already is refused like anyone else. A file is made if it is not there; its folder must be. All
// users of the machine may read it, which is enough to lock it. Functions throw std::runtime_error
// if it can be neither made nor opened, or is a symbolic link or no regular file.

// Returns the lock; empty if somebody holds it during all of `patience`.
unique_fd try_lock_file(const std::filesystem::path& file,
                        std::chrono::milliseconds patience = std::chrono::milliseconds(0));
// Returns whether somebody holds the lock. A try to lock the file at the same moment fails if it
// has no patience. The file is not made.
bool is_locked(const std::filesystem::path& file);
// Waits until nobody holds the lock, and returns it.
unique_fd lock_file(const std::filesystem::path& file);
// Returns the process that took the lock, as "process 1234 (hone run a.toml)"; empty if nobody
// holds it or the kernel does not say (a process of another container).
std::string describe_holder(const std::filesystem::path& file);

}  // namespace hone
