#pragma once

#include <string>

namespace hone {

// Returns the lines of `hone --version`: version and revision of Hone, the versions that decide
// which nodes may join and which pools can be opened, and the libraries that it was built with.
std::string describe_version();

}  // namespace hone
