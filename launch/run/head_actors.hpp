#pragma once

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/node.hpp"
#include "actors/pool.hpp"
#include "actors/telemetry.hpp"
#include "launch/configuration.hpp"
#include "launch/run/page_door.hpp"
#include "launch/run/run_folder.hpp"
#include "network/acceptor.hpp"
#include "network/files/file_server.hpp"

namespace hone {

// The actors of a first node that judge: all but the policy's.
struct head_actors {
  pool_actor pool;
  telemetry_actor telemetry;
  working_node_actor node;
  node_wiring wiring;
  std::shared_ptr<file_server> files;
  std::shared_ptr<page_door> pages;
  std::shared_ptr<acceptor> door;  // lets other nodes join as long as it lives
};

// Everything from which these actors are made. The referenced objects must outlive the actors.
struct head_parts {
  const configuration& settings;
  const run_folder& folder;
  std::shared_ptr<const task_table> tasks;
  std::vector<planned_device> devices;
  pool_actor_options pool;                    // without the folder and the judge version
  std::set<std::string> scored_device_types;  // types on which the pool's variants have scores
  bool needs_baselines = false;               // keeps nodes out that time none
  generator_setup_record setup;               // of joined nodes' generators; empty: they have none

  // Called on the actors' threads. `on_new_type`: a joined node has brought the first device of a
  // type.
  std::function<void(const std::string& device_type)> on_new_type;
  std::function<void(const std::string&)> log;
  std::function<void(const node_snapshot&)> show;
};

// The steps before the actors start, in this order.

// Finds where the run in a folder goes on, on a thread that lets messages pass: RocksDB's threads
// start when a process first opens a pool, with the priority of that thread. Throws as
// run_folder::find_resume_point().
run_folder::resume_point find_resume_point(const run_folder& folder,
                                           const std::function<void(const std::string&)>& say);
// Throws std::runtime_error if devices are simulated where the pool's scores are real, or the other
// way round.
void refuse_to_mix(const configuration& c, const run_folder& folder,
                   const std::set<std::string>& scored_device_types);
// Writes to a closed pipe or socket, or beyond the limit on file sizes, fail as on a full disk.
void ignore_signals_of_writes();
// Plans the first node's devices. Throws std::runtime_error.
std::vector<planned_device> plan_head_devices(const configuration& c, bool waits_for_cores);

// Starts the actors, each after those that it sends to. `supervisor` receives (fatal_atom, reason)
// from the pool. Throws std::runtime_error.
head_actors start_head(caf::actor_system& system, const head_parts& parts,
                       caf::scoped_actor& supervisor);

// Has telemetry show the status of an actor.
template <class Actor>
void watch(const head_actors& head, const Actor& one) {
  caf::anon_send(head.telemetry, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(one));
}

// Lets other nodes join from now on. Throws network_error.
void open_door(caf::actor_system& system, const head_parts& parts, head_actors& head);

}  // namespace hone
