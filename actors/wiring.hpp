#pragma once

#include <string>
#include <vector>

#include "actors/fetcher.hpp"
#include "actors/generator.hpp"
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

// A generator of a joined node.
struct planned_generator {
  std::string device;
  generator_options options;  // without the handles of actors, which the node fills in
};

// The generators of a joined node, and what they need.
struct generation_plan {
  learner_actor learner;  // of the run
  fetcher_options fetching;
  std::vector<planned_generator> generators;
};

// A node as its own process sees it.
using working_node_actor = node_actor::extend<
    // launch: the run is lost; the workers stop, and the devices wait
    caf::reacts_to<leave_atom>,
    // launch, on a joined node: takes no more jobs, and ends after those that its workers have
    caf::reacts_to<finish_atom>,
    // launch, on the first node: the learner that generators of joined nodes register with
    caf::reacts_to<generate_atom, learner_actor>,
    // launch: has joined the run again; workers start for it, and this telemetry watches them
    caf::reacts_to<join_atom, node_wiring, telemetry_actor, generation_plan>>;

}  // namespace hone

// Sent within a process only.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(hone::node_wiring)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(hone::generation_plan)
