#pragma once

#include <string>
#include <vector>

#include "launch/cluster/cluster_file.hpp"
#include "launch/configuration.hpp"

namespace hone {

// What does not fit between a cluster and its run, as sentences for people.
struct cluster_misfits {
  std::vector<std::string> problems;  // nodes would be refused, or would end
  std::vector<std::string> notes;     // the run waits for nodes that others start
};

// Finds devices whose scores would not mix, generators without a policy to write with, and that
// nothing judges or compiles. `c`: the head's configuration.
cluster_misfits find_misfits(const cluster_plan& plan, const configuration& c);

}  // namespace hone
