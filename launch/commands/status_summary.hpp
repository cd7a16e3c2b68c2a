#pragma once

#include <string>
#include <vector>

#include "messages/caf_records.hpp"

namespace hone {

// Prints what the nodes of a run have done in all, by type of device and by pool of the cluster, a
// row each. A node belongs to the pool POOL if its name is POOL-NUMBER and POOL is among `pools`;
// the others make a row together.
void print_summary(const std::vector<node_status_record>& nodes,
                   const std::vector<std::string>& pools);

// Prints a row for each node.
void print_nodes(const std::vector<node_status_record>& nodes);

}  // namespace hone
