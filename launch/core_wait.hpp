#pragma once

#include <functional>
#include <string>

namespace hone {

// Returns what device_options::begin_to_wait does in a command with the option --wait. If `waits`,
// it says on standard error what the command waits for; if not, it throws std::runtime_error, which
// names the option.
std::function<void(const std::string&)> core_wait(bool waits);

}  // namespace hone
