#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "actors/activity.hpp"
#include "actors/gpu_turns.hpp"
#include "messages/interfaces.hpp"
#include "policy/curriculum.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// What a step was, and the numbers that it brought; before the first one of a run there are none.
struct learned_step {
  Stage stage = Stage::SFT;
  std::int64_t step = 0;  // of its stage, from 1
  curriculum::numbers numbers;
};

struct learner_options {
  std::filesystem::path run_folder;
  std::function<std::unique_ptr<curriculum>()> make_curriculum;  // called on the actor's own thread
  curriculum_options plan;
  std::size_t corpus_groups = 0;     // that will enter the pool
  std::size_t keep_checkpoints = 5;  // the newest; each stage's last stay as well
  std::vector<version_record>
      chain;  // from the root to the version to go on from; empty: a new run
  bool leaves_branch =
      false;  // that version is not the pool's head: what came after it is given up
  std::uint64_t next_version = 0;
  shared_gpu gpu;  // set where a device of this node times on the policy's GPU
  std::function<void(const std::string&)> log;                              // for people
  std::function<void(const version_record&, const learned_step&)> metrics;  // a line a step
};

// Owns the stage. Takes complete groups, makes a step, puts its checkpoint on disk, commits it with
// the groups that it consumed, publishes the new weights. Trains: spawn it detached.
struct learner_state {
  learner_state() = default;

  // Taken from the policy in its turn, to be written and committed outside of it.
  struct taken_version {
    taken_checkpoint checkpoint;
    version_record version;
    step_record step;
    learned_step learned;
  };

  learner_actor::stateful_pointer<learner_state> self = nullptr;
  learner_options options;
  pool_actor pool;
  std::vector<generator_actor> generators;
  caf::actor supervisor;             // hears (finish_atom, complete) and (fatal_atom, reason)
  std::unique_ptr<curriculum> plan;  // empty until its first turn
  gpu_turns turns;
  activity counts{"learner", "learner"};
  std::uint64_t next_version = 0;
  version_record head;
  std::set<std::uint64_t> stage_ends;  // versions with which a stage ended; their checkpoints stay
  std::optional<std::uint64_t>
      before_contrast;             // the version that the comparison holds the last one against
  std::vector<group_id> admitted;  // corpus groups since the last version
  std::size_t admitted_in_all = 0;
  std::optional<Stage> asking;  // a batch of this stage has been asked for and has not come
  bool slice_waits = false;     // of supervised training, for its turn
  bool comparing = false;
  std::uint32_t compared_groups = 0;      // that the comparison will bring
  std::optional<taken_version> to_write;  // is not yet on disk
  bool committing = false;                // until the pool has it
  bool stopping = false;
  bool finished = false;

  void start();
  void go_on();
  void train_supervised();
  void train_supervised_slice();
  void ask(Stage stage, std::uint32_t at_least, std::uint32_t at_most, bool is_even);
  void take(const batch_record& batch);
  void learn(const batch_record& batch);
  void commit(const learned_step& learned, const std::vector<group_id>& groups, bool complete);
  void write_and_commit(const taken_version& taken);
  void publish();
  void compare();
  void finish(bool complete);
  void tick_soon(std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  void remember(const version_record& version);
  void delete_old_checkpoints() const;
};

learner_actor::behavior_type learner(learner_actor::stateful_pointer<learner_state> self,
                                     learner_options options, pool_actor pool,
                                     std::vector<generator_actor> generators,
                                     caf::actor supervisor);

}  // namespace hone
