#pragma once

#include <caf/all.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/generator.hpp"
#include "actors/learner.hpp"
#include "actors/node.hpp"
#include "actors/telemetry.hpp"
#include "launch/configuration.hpp"
#include "launch/run/run_folder.hpp"
#include "network/acceptor.hpp"
#include "network/files/file_server.hpp"

namespace hone {

// The actors of a run's first node that the run itself talks to.
struct run_actors {
  pool_actor pool;
  telemetry_actor telemetry;
  working_node_actor node;
  std::vector<generator_actor> generators;
  learner_actor learner;
  std::shared_ptr<file_server> files;
  std::shared_ptr<acceptor> door;  // lets other nodes join as long as it lives
};

// Everything from which a run's actors are made. The referenced objects must outlive the actors.
struct run_parts {
  const configuration& settings;
  const run_folder& folder;
  const run_folder::resume_point& from;
  std::shared_ptr<const task_table> tasks;
  std::shared_ptr<const prompt_template> prompts;
  std::vector<planned_device> devices;
  std::vector<group_record> corpus_groups;
  std::filesystem::path stream_excludes;  // exclude_held_out(); empty without a stream
  bool corpus_awaits_nodes = false;       // there are documents, and no device here to judge them

  // Called on the actors' threads. `on_new_type`: a joined node has brought the first device of a
  // type.
  std::function<void(const std::string& device_type)> on_new_type;
  std::function<void(const std::string&)> log;
  std::function<void(const node_snapshot&)> show;
  std::function<void(const version_record&, const learned_step&)> metrics;
};

// Starts the actors of a run, each after those that it sends to, and sends the corpus to the pool.
// `supervisor` monitors the generators and the learner; it receives (finish_atom, complete) from
// the learner, and (fatal_atom, reason) from the pool and the learner. Throws std::runtime_error.
run_actors start_run_actors(caf::actor_system& system, const run_parts& parts,
                            caf::scoped_actor& supervisor);

}  // namespace hone
