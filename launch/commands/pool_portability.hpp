#pragma once

#include <string>
#include <vector>

#include "storage/inspection.hpp"

namespace hone {

// Prints how fast the best variant that was found on each type of device is on the others, for each
// task: with scores of the pool or, on the devices that are named, one of each type, measured now.
// An empty `task` means all. Returns the exit code. Throws std::runtime_error.
int print_portability(const pool_inspector& pool, const std::vector<std::string>& devices,
                      bool share_cores, const std::string& task, bool json);

}  // namespace hone
