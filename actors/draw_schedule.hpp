#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "messages/schema/training.capnp.h"

namespace hone {

// Decides which task and device type the next draw is for, and whether there is room for it. Tasks
// and device types take turns. One bound keeps queues short and groups fresh: outstanding draws,
// waiting groups and ready groups together number at most `max_groups`; the corpus does not count.
// With several device types, each may hold only so many groups that the others together leave room
// for one step. A device type whose groups finish too late to be trained on gets fewer draws: half
// as many at a time for every batch that found such groups, and one more for every group that was
// trained on. Must be used by one thread at a time.
class draw_schedule {
 public:
  struct options {
    std::size_t max_groups = 20;
    std::uint32_t samples = 16;  // completions per group
    // A draw that has been outstanding for longer than this is given up.
    std::uint64_t draw_limit_ms = 600000;
    // Groups per training step, for which several device types must leave room; 0 for none.
    std::size_t step_groups = 0;
    // The place that the first draw is for, counted over tasks and device types in turn: a resumed
    // run goes on about where it was, and does not begin with its first tasks each time.
    std::size_t first_place = 0;
  };
  // A task on a device type.
  struct place {
    task_id task;
    std::string device_type;
    bool operator==(const place&) const = default;
  };
  // The choices that the schedule makes for one draw.
  struct assignment {
    place where;
    Stage stage = Stage::CONTRASTIVE;
    std::uint64_t version = 0;   // the policy version that writes
    std::size_t comparison = 0;  // index of the draw that all compared versions share
    std::uint32_t samples = 0;
    schema::Draw::Arm arm = schema::Draw::Arm::SAMPLED;
    bool is_held_out = false;
  };

  // `tasks` are those that the run learns from. `held_out` are drawn for in comparisons alone.
  draw_schedule(std::vector<task_id> tasks, const options& o, std::vector<task_id> held_out = {})
      : tasks_(std::move(tasks)),
        held_out_(std::move(held_out)),
        options_(o),
        next_place_(o.first_place) {}

  // Changes the number of devices of a type by `by`, which may be negative.
  void change_devices(const std::string& device_type, int by);
  std::vector<std::string> device_types() const;

  // Records what became of the groups of a device type: how many the learner has taken, and how
  // many were dropped since they were too old.
  void note_outcome(const std::string& device_type, std::size_t taken, std::size_t dropped);

  // Returns the next assignment, or nullopt if there is no room or the stage draws nothing.
  // `waiting` and `ready` are numbers of groups that draws have made. `waiting_by_type` has the
  // waiting groups by device type, those of the corpus included: a type has its own backlog to work
  // off, but does not wait for another's.
  std::optional<assignment> next(Stage stage, std::uint64_t version, std::size_t waiting,
                                 std::size_t ready,
                                 const std::map<std::string, std::size_t>& waiting_by_type);

  // Returns the place that next() will return if it is of a held-out task whose prompt may show
  // exemplars. A held-out task has few, and its draws should wait for all of them.
  const place* next_held_out() const {
    const auto first = next_compared();
    if (first == comparisons_.end()) return nullptr;
    const bool shows_exemplars = first->is_held_out && first->arm != schema::Draw::Arm::BARE;
    return shows_exemplars ? &first->where : nullptr;
  }

  // Returns true if no further group can become ready until the learner consumes some: no draw is
  // outstanding, no group waits, and the ready groups leave no room (or every draw of a comparison
  // was issued).
  bool is_exhausted(Stage stage, std::size_t waiting, std::size_t ready) const {
    return outstanding_.empty() && waiting == 0 &&
           (stage == Stage::COMPARISON ? comparisons_.empty() : ready >= options_.max_groups);
  }

  // Returns the least number for which `groups` groups can be spread over all tasks with at most
  // this many per task.
  std::size_t groups_per_task(std::size_t groups) const {
    return tasks_.empty() ? groups : (groups + tasks_.size() - 1) / tasks_.size();
  }

  // Schedules a comparison, before all other draws, and drops the rest of a validation. One
  // choice of exemplars would say little about a policy, so each completion has a separate draw,
  // which all compared versions share. `types` are device types besides those that are present. A
  // draw waits while its device type has no device. Returns the number of groups.
  std::size_t compare(const schema::ComparisonRequest::Reader& request,
                      std::set<std::string> types = {});
  // Leaves out the draws of the comparison for which `is_made` returns true: an earlier process has
  // made them.
  template <class IsMade>
  void leave_out(const IsMade& is_made) {
    std::erase_if(comparisons_, is_made);
  }
  // Schedules a validation, before all other draws: a greedy answer to each of at most `tasks`
  // held-out tasks on every device type, by the policy as it is then. Returns the number of groups.
  std::size_t validate(std::uint64_t version, std::size_t tasks);

  // Records that a draw was handed out to a generator, for which the caller has a number.
  void issue(const draw_id& draw, const assignment& what, std::uint64_t now_ms,
             std::uint64_t generator = 0) {
    outstanding_[draw] = {now_ms, generator, what};
  }
  // Records that the group of a draw was submitted.
  void complete(const draw_id& draw) { outstanding_.erase(draw); }
  // Gives up the draws that have been outstanding for longer than `draw_limit_ms`. A draw of a
  // comparison is scheduled again.
  void expire(std::uint64_t now_ms);
  // Gives up the draws of a generator that has ended, in the same way.
  void forget(std::uint64_t generator);
  std::size_t outstanding() const { return outstanding_.size(); }

 private:
  struct issued_draw {
    std::uint64_t issued_ms = 0;
    std::uint64_t generator = 0;
    assignment what;
  };

  // Gives up the outstanding draws for which `is_lost` is true.
  template <class IsLost>
  void give_up(const IsLost& is_lost);
  void drop_validation();
  // Returns the first scheduled draw whose device type has a device.
  std::deque<assignment>::const_iterator next_compared() const;
  static std::vector<place> places_of(const std::vector<task_id>& tasks,
                                      const std::set<std::string>& types);
  std::size_t max_per_type() const;
  std::size_t max_of_type(const std::string& device_type) const;

  std::vector<task_id> tasks_;
  std::vector<task_id> held_out_;
  options options_;
  std::map<std::string, int> devices_;
  std::map<std::string, std::size_t> lowered_;  // limits of types whose groups were dropped
  std::size_t next_place_;
  std::deque<assignment> comparisons_;  // and validations
  std::map<draw_id, issued_draw> outstanding_;
};

}  // namespace hone
