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

// Finds devices whose scores would not mix, generators without a policy to write with, that nothing
// judges or compiles, and a head that needs a GPU where there is none. `c`: the head's
// configuration. `has_gpu`: whether the machine has one on which the head starts.
cluster_misfits find_misfits(const cluster_plan& plan, const configuration& c, bool has_gpu);

}  // namespace hone
