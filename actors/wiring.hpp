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

// A node as its own process sees it.
using working_node_actor = node_actor::extend<
    // launch: the run is lost; the workers stop, and the devices wait
    caf::reacts_to<leave_atom>,
    // launch: has joined the run again; workers start for it, and this telemetry watches them
    caf::reacts_to<join_atom, node_wiring, telemetry_actor>>;

}  // namespace hone

// Sent within a process only.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(hone::node_wiring)
