#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/names.hpp"
#include "messages/schema/storage.capnp.h"
#include "messages/schema/training.capnp.h"
#include "storage/database.hpp"

namespace hone {

// Follows groups from their arrival to the step that trains on them: pending while evaluations are
// missing, ready when complete, trained or dropped in the end. The ready ones queue in the order of
// completion, on disk and here. Writes into the database's uncommitted batch.
class group_book {
 public:
  struct ready_group {
    std::uint64_t sequence = 0;
    group_id group;
    task_id task;
    Stage stage = Stage::SFT;
    std::uint64_t oldest_version = 0;  // of the weights that wrote its tokens
    bool has_version = false;          // a corpus group has none
  };

  struct waiting_group {
    std::size_t results = 0;  // that are missing
    std::string device_type;
  };

  // `waiting`: groups with missing evaluations, from the ledger.
  group_book(database& db, std::map<group_id, waiting_group> waiting, std::uint64_t next_sequence);

  // Both return true when the group is complete now.
  bool begin(const schema::RolloutGroup::Reader& group, std::size_t waits_for);
  bool release(const group_id& group);

  const std::deque<ready_group>& ready() const { return ready_; }
  // How many wait, by their type of device.
  const std::map<std::string, std::size_t>& waiting_by_type() const { return waiting_by_type_; }
  std::uint64_t next_sequence() const { return next_sequence_; }

  // Groups of a stage that nobody wants any more: ready ones are dropped, waiting ones will be when
  // they are complete.
  void abandon(Stage stage);
  void mark_trained(const group_id& group, std::uint64_t version);
  void mark_dropped(const group_id& group);
  // A step over it was abandoned: it is ready again.
  void give_back(const group_id& group);

 private:
  void make_ready(const schema::RolloutGroup::Reader& group);
  void leave_ready(const group_id& group);
  void store(const group_id& group, schema::GroupProgress::State state, std::uint64_t sequence,
             std::uint64_t trained_by);

  database* db_;
  std::map<group_id, waiting_group> waiting_;
  std::map<std::string, std::size_t> waiting_by_type_;
  std::set<group_id> unwanted_;
  std::deque<ready_group> ready_;
  std::uint64_t next_sequence_;
};

}  // namespace hone
