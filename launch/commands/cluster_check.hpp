#pragma once

#include <string>
#include <vector>

#include "launch/cluster/cluster_file.hpp"
#include "launch/configuration.hpp"

namespace hone {

// Returns, as sentences for people, what would keep a cluster's nodes from working for its run, or
// the run from getting on: devices whose scores would not mix, generators without a policy of the
// run to write with, and no device at all. `c`: the head's configuration.
std::vector<std::string> find_misfits(const cluster_plan& plan, const configuration& c);

}  // namespace hone
