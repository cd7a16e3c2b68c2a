#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/gpu_lease.hpp"
#include "messages/interfaces.hpp"
#include "policy/network/weights_exchange.hpp"
#include "policy/training/curriculum.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// One training step with its metrics. A version that is made without training, such as the first
// one of a run, has no metrics.
struct learned_step {
  Stage stage = Stage::SFT;
  std::int64_t step = 0;  // number within the stage, from 1; 0 for a version without a step
  curriculum::numbers numbers;
};

struct learner_options {
  curriculum_options plan;
  // Number of newest checkpoints that are kept. The last checkpoint of each stage is kept as well.
  std::size_t keep_checkpoints = 3;

  // The rest is set by the run, not by its configuration.
  std::filesystem::path run_folder;
  // All tasks of the run; for validations.
  std::shared_ptr<const task_table> tasks;
  // Called once, on the actor's own thread, under the GPU lease if the GPU is shared.
  std::function<std::unique_ptr<curriculum>()> make_curriculum;
  // Numbers of corpus groups that will enter the pool, by device type.
  std::map<std::string, std::size_t> corpus_groups;
  // Supervised fine-tuning draws from a stream, of which the corpus groups are a sample.
  bool streams = false;
  // The corpus has documents, and no device type has any to judge yet: the nodes that bring devices
  // have not joined.
  bool awaits_corpus = false;
  // Versions from the root to the one to continue from; empty for a new run.
  std::vector<version_record> chain;
  // True if that version is not the pool's head, so that a branch starts and the steps after that
  // version are abandoned.
  bool leaves_branch = false;
  // The first version has random weights: it writes no programs, so it is not compared on held-out
  // tasks.
  bool begins_random = false;
  std::uint64_t next_version = 0;
  shared_gpu gpu;
  // With the generators of this process; null if there are none.
  std::shared_ptr<weights_exchange> exchange;
  bool has_distant_generators = false;  // some generators run on another device
  // False has checkpoints written by an actor that shares the scheduler's threads, for tests that
  // run all actors on one.
  bool has_thread_for_writing = true;
  std::function<void(const std::string&)> log;                              // receives log lines
  std::function<void(const version_record&, const learned_step&)> metrics;  // called once per step
};

// The documents of a stream that were judged. What the policy imitates was not, so a fault of the
// teacher or of a device must show here.
struct stream_sample {
  std::size_t documents = 0;
  std::size_t wrong = 0;
  // Counts the documents of a group. Throws std::runtime_error if more than 1 % of at least a
  // hundred are not ok.
  void count(const schema::ScoredGroup::Reader& scored);
};

// Owns the stage of learning. For each step it takes ready groups from the pool, trains, hands the
// new weights to the generators of its process, writes a checkpoint, commits the step with the
// groups that it consumed, and announces the version to all generators, which come and go. Blocks
// its thread while the network is trained, so it must be spawned detached.
struct learner_state {
  learner_state() = default;

  // A version with the step that made it.
  struct made_version {
    version_record version;
    step_record step;
    learned_step learned;
  };

  learner_actor::stateful_pointer<learner_state> self = nullptr;
  learner_options options;
  pool_actor pool;
  std::map<caf::actor_addr, generator_actor> generators;  // on all nodes
  caf::actor supervisor;             // receives (finish_atom, complete) and (fatal_atom, reason)
  std::unique_ptr<curriculum> plan;  // null until the first work on the GPU
  gpu_lease lease;
  activity counts{"learner", "learner"};

  version_record head;  // the newest version that is committed
  version_record tip;   // the newest one that was made
  std::uint64_t next_version = 0;
  // Versions that write for held-out tasks in the comparison, so their checkpoints are kept: those
  // at which a stage begins, unless they are random, and those of `comparison.curve`.
  std::set<std::uint64_t> kept_versions;
  // Version before the contrastive stage, which the comparison compares with the last one.
  std::optional<std::uint64_t> before_contrastive;
  std::vector<batch_record> taken;       // of the contrastive step that still needs groups
  std::optional<Stage> requested_stage;  // stage of the request for a batch without a reply yet
  std::set<group_id> admitted;           // corpus groups admitted since the last version
  std::map<std::string, std::size_t> admitted_by_type;  // corpus groups admitted in all
  stream_sample sample;
  bool slice_is_due = false;  // a slice of supervised training waits for its lease
  bool batch_is_due = false;  // so does a batch
  bool validating = false;
  std::optional<caf::actor_clock::time_point> validated_at;  // when the last one began
  curriculum::numbers validated;  // of a validation that no step has reported yet
  bool comparing = false;
  std::uint32_t comparison_groups = 0;
  std::optional<made_version> made;  // its checkpoint is not taken yet: another is being written
  bool taking_is_due = false;        // waits for its lease
  bool writing = false;
  std::uint32_t uncommitted = 0;          // versions that the pool has not acknowledged
  std::set<group_id> uncommitted_groups;  // that these have consumed
  std::optional<caf::actor_clock::time_point> tick_at;  // when the next tick is due
  bool stopping = false;
  bool finished = false;

  void start();
  void replay();
  // Does the next piece of work of the current stage.
  void work();
  void admit(const schema::ScoredGroup::Reader& scored);
  bool has_enough_of_corpus() const;
  void train_supervised();
  void train_supervised_slice();
  void request_batch(Stage stage, std::uint32_t at_least, std::uint32_t at_most, bool is_even);
  void take_batch(const batch_record& batch);
  void request_contrastive_batch();
  // Learns from a batch that the stage needs as a whole.
  void learn_on_gpu(const batch_record& batch);
  void learn(const batch_record& batch);
  // True while the next piece of work needs a version that is not committed, or a version waits
  // for its checkpoint to be taken. Within a stage, the next step is made while the last one's
  // checkpoint is being written.
  bool must_wait() const;
  // Makes the policy's weights a version, which is committed later; must run under the lease.
  void commit(learned_step learned, const std::vector<group_id>& groups, bool complete);
  // Takes the checkpoint of `made`, and has it written; must run under the lease.
  void take_and_write();
  void add_generator(const caf::strong_actor_ptr& generator);
  // True of a generator of this process, which takes weights from the exchange.
  bool is_near(const generator_actor& generator) const;
  // Gives a version to the generators of this process. Must run under the GPU lease.
  void hand_over(const version_record& version);
  void request_commit(const made_version& written);
  void publish();
  // Has the newest version answer held-out tasks, if a validation is due.
  void validate();
  void compare();
  void end_without_comparison();  // commits the last version
  void finish(bool complete);
  void fail(const std::string& reason);
  // The same for a request that the pool has not served.
  void fail_to(const std::string& what, const caf::error& e);
  // Does work, and ends the run with the reason if it throws.
  void attempt(const std::function<void()>& work);
  // The same under the GPU lease, at once if there is none.
  void attempt_on_gpu(std::function<void()> work);
  // Has work() called after the delay, once if it is asked for more often until then.
  void schedule_tick(std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  void set_head(const version_record& version);
  void delete_old_checkpoints() const;
};

learner_actor::behavior_type learner_behavior(learner_actor::stateful_pointer<learner_state> self,
                                              learner_options options, pool_actor pool,
                                              caf::actor supervisor);

}  // namespace hone
