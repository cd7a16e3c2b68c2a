#pragma once

#include <caf/actor_system.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "actors/node.hpp"
#include "launch/system.hpp"
#include "network/identity.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// A node's description of itself in its request to join a run.
struct join_options {
  head_address head;
  std::string name;
  device_kinds devices{};
  bool times_baselines = true;
  std::size_t generators = 0;
};

// Settings of a node that has joined.
struct joined_run {
  node_wiring wiring;
  std::shared_ptr<const task_table> tasks;
  std::string configuration;     // of the run, as TOML
  learner_actor learner;         // empty, as the next one, for a node without generators
  generator_setup_record setup;  // what the node's generators are made of
};

// Joins a run, and blocks meanwhile; waits up to `wait` for one that does not listen yet. Tasks
// that `earlier` (may be null) has are not copied again; `cache` returns the folder of copies, and
// is called if one is needed. Throws network_error: refused_by_head, or connection_failed if it may
// be otherwise a moment later.
joined_run join_run(caf::actor_system& system, const join_options& options,
                    std::chrono::seconds wait, const task_table* earlier,
                    const std::function<std::filesystem::path()>& cache);

}  // namespace hone
