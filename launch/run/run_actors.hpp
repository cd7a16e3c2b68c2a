#pragma once

#include <caf/all.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/generator.hpp"
#include "actors/learner.hpp"
#include "launch/run/head_actors.hpp"

namespace hone {

// The actors of a run's first node that the run itself talks to.
struct run_actors {
  head_actors head;
  std::vector<generator_actor> generators;
  learner_actor learner;
};

// Everything from which a run's actors are made. The referenced objects must outlive the actors.
struct run_parts {
  head_parts head;
  const run_folder::resume_point& from;
  std::shared_ptr<const prompt_template> prompts;
  std::vector<group_record> corpus_groups;
  std::filesystem::path stream_excludes;  // exclude_held_out(); empty without a stream
  bool corpus_awaits_nodes = false;       // there are documents, and no device here to judge them

  // Called on the actors' threads.
  std::function<void(const version_record&, const learned_step&)> metrics;
};

// Starts the actors of a run, each after those that it sends to, and sends the corpus to the pool.
// `supervisor` monitors the generators and the learner; it receives (finish_atom, complete) from
// the learner, and (fatal_atom, reason) from the pool and the learner. Throws std::runtime_error.
run_actors start_run_actors(caf::actor_system& system, const run_parts& parts,
                            caf::scoped_actor& supervisor);

}  // namespace hone
