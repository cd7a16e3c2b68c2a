#pragma once

#include "messages/interfaces.hpp"

namespace hone {

// The actors that a node's workers take jobs from and send results to: the node's own, or those of
// the node that it joined.
struct node_wiring {
  compile_queue_actor compiles;
  verify_queue_actor verifies;
  benchmark_queue_actor benchmarks;
  pool_actor pool;
  node_actor uplink;  // the node that was joined; empty on the first node
};

}  // namespace hone
