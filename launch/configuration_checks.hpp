#pragma once

#include "launch/configuration.hpp"

namespace hone {

// Throws format_error if values of a configuration contradict each other. The ranges of single
// values have been checked when they were read.
void check_configuration(const configuration& c);

}  // namespace hone
