#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/names.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/storage.capnp.h"
#include "messages/schema/training.capnp.h"
#include "storage/database.hpp"

namespace hone {

// Returns the stage that trains on the group. It is sft for a corpus group.
Stage stage_of(const schema::RolloutGroup::Reader& group);
// Returns what an evaluation means for a group. A variant that is correct and could not be timed is
// ok for a group that is only verified, and inconclusive for others.
Outcome outcome_for(const schema::RolloutGroup::Reader& group,
                    const schema::Evaluation::Reader& known);

// Tracks groups from their arrival to the step that trains on them. A group waits while
// evaluations are missing, ready when all are known, and in the end trained or dropped. Ready
// groups queue in the order in which they became ready, on disk and in memory. Changes go into the
// database's uncommitted batch. `db` must outlive the book. Not thread-safe. Throws pool_error.
class group_book {
 public:
  struct ready_group {
    std::uint64_t sequence = 0;  // place in the queue
    group_id group;
    task_id task;
    std::string device_type;
    Stage stage = Stage::SFT;
    std::uint64_t oldest_version = 0;  // the oldest version that sampled any of its tokens
    bool has_version = false;          // false for a corpus group
  };

  struct waiting_group {
    std::size_t missing = 0;  // number of missing evaluations
    std::string device_type;
    Stage stage = Stage::CONTRASTIVE;  // SFT for a corpus group
    task_id task;
    std::uint64_t expires_ms = 0;  // Unix time at which nobody waits for it any more; 0: never
    bool is_drawn() const { return stage != Stage::SFT; }
  };
  // Numbers of waiting groups.
  struct waiting_counts {
    std::size_t all = 0;
    std::size_t drawn = 0;  // those that a draw made; the others are of the corpus
  };

  // Reads the ready queue. `waiting` holds the waiting groups with what
  // evaluation_ledger::waiting_groups() knows of them. `next_sequence` is a lower bound of the next
  // place in the queue.
  group_book(database& db, std::map<group_id, waiting_group> waiting, std::uint64_t next_sequence);

  // Starts to track a group of which `waits_for` evaluations are missing. Returns true if the group
  // is ready.
  bool begin(const schema::RolloutGroup::Reader& group, std::size_t waits_for);
  // Takes one missing evaluation of `group` as known. Returns the group, as it is stored, if it was
  // the last one: the group becomes ready.
  std::optional<record<schema::RolloutGroup>> release(const group_id& group);

  // The ready groups of each stage by their place in the queue.
  using ready_queue = std::map<std::uint64_t, ready_group>;
  const std::map<Stage, ready_queue>& ready() const { return ready_; }
  const ready_queue& ready(Stage stage) const;
  bool is_ready(const group_id& group) const { return ready_places_.contains(group); }
  bool is_waiting(const group_id& group) const { return waiting_.contains(group); }
  // Returns the waiting groups that have expired.
  std::set<group_id> expired(std::uint64_t now_ms) const;
  // Number of ready groups of all stages, and of one stage except for the groups in `without`.
  std::size_t count_ready() const { return ready_places_.size(); }
  std::size_t count_ready(Stage stage, const std::set<group_id>& without) const;
  // Number of waiting groups per device type.
  const std::map<std::string, waiting_counts>& waiting_by_type() const { return waiting_by_type_; }
  // Returns true if a corpus group of a task waits for an evaluation on a device type.
  bool awaits_corpus(const task_id& task, const std::string& device_type) const {
    return waiting_corpus_.contains({device_type, task});
  }
  // Returns true if one of `groups` waits and is of the corpus.
  bool awaits_corpus(const std::vector<group_id>& groups) const;
  std::uint64_t next_sequence() const { return next_sequence_; }

  // Returns the groups of a stage that wait or are ready.
  std::vector<record<schema::RolloutGroup>> open_groups(Stage stage) const;
  // Drops the groups of a stage that no step has consumed, unless their draws are `kept`. Returns
  // the dropped ones that waited.
  std::set<group_id> abandon(Stage stage, const std::set<draw_id>& kept);
  // Drops these groups, which wait.
  void withdraw(const std::set<group_id>& groups);
  // Records the rollouts, by index, whose programs copy one that the prompt shows.
  void note_copies(const group_id& group, const std::vector<std::uint32_t>& copies);
  void mark_trained(const group_id& group, std::uint64_t version);
  void mark_dropped(const group_id& group);
  // Makes a group ready again whose step was abandoned, or drops it if its tokens were removed.
  void give_back(const group_id& group);

 private:
  void count_waiting(const waiting_group& group, int by);
  void make_ready(const schema::RolloutGroup::Reader& group);
  void append(ready_group group);
  void leave_ready(const group_id& group);
  record_builder<schema::GroupProgress> progress_of(const group_id& group) const;
  void store(const group_id& group, schema::GroupProgress::State state, std::uint64_t sequence,
             std::uint64_t trained_by);

  database* db_;
  std::map<group_id, waiting_group> waiting_;
  std::map<std::string, waiting_counts> waiting_by_type_;
  // Numbers of waiting corpus groups by device type and task.
  std::map<std::pair<std::string, task_id>, std::size_t> waiting_corpus_;
  struct ready_place {
    Stage stage = Stage::SFT;
    std::uint64_t sequence = 0;
  };
  std::map<Stage, ready_queue> ready_;
  std::map<group_id, ready_place> ready_places_;  // where ready_ has them
  std::uint64_t next_sequence_;
};

}  // namespace hone
