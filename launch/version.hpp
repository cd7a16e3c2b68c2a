#pragma once

#include <string>

namespace hone {

struct build_versions {
  std::string version;   // "0.1.0"
  std::string revision;  // of the sources, by git
};

// Returns the version and revision of Hone.
build_versions versions_of_build();

// Returns the lines of `hone --version`: version and revision of Hone, the versions that decide
// which nodes may join and which pools can be opened, and the libraries that it was built with.
std::string describe_version();

}  // namespace hone
