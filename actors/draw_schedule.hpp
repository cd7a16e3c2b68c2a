#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/names.hpp"

namespace hone {

// Decides which task and device type the next draw is for, and whether there is room for it. Tasks
// and device types take turns. One bound holds everything: draws that are out, groups that wait for
// results and groups that wait for the learner together stay below `max_groups`, so that queues are
// bounded and groups do not grow old. However slow some types of device are, they leave the others
// room for a step.
class draw_schedule {
 public:
  struct options {
    std::size_t max_groups = 20;
    std::uint32_t samples = 16;            // completions a group
    std::uint64_t draw_limit_ms = 600000;  // a draw that is out for longer is given up
    std::size_t step_groups = 0;           // that a step takes
  };
  struct place {
    task_id task;
    std::string device_type;
    bool operator==(const place&) const = default;
  };
  // A place, and for a comparison the version that shall write and which of the shared draws it is.
  struct assignment {
    place where;
    Stage stage = Stage::CONTRASTIVE;
    std::uint64_t version = 0;
    std::size_t comparison = 0;
    std::uint32_t samples = 0;
  };

  draw_schedule(std::vector<task_id> tasks, const options& o)
      : tasks_(std::move(tasks)), options_(o) {}

  void change_devices(const std::string& device_type, int by);
  std::vector<std::string> device_types() const;

  // `waiting` and `ready` are groups of the stage that have been written, `waiting_of` the waiting
  // ones of a type of device. Nothing: no room, or nothing is to be drawn in this stage.
  std::optional<assignment> next(Stage stage, std::uint64_t version, std::size_t waiting,
                                 std::size_t ready,
                                 const std::map<std::string, std::size_t>& waiting_of);
  // Nothing is out, nothing waits, and nothing more is drawn, of a comparison since all was, in
  // other stages since what is ready leaves no room: no other group of the stage will come until
  // some of these are trained on.
  bool has_run_dry(Stage stage, std::size_t waiting, std::size_t ready) const {
    return out_.empty() && waiting == 0 &&
           (stage == Stage::COMPARISON ? comparisons_.empty() : ready >= options_.max_groups);
  }
  // At least how many of so many groups must be of one task, however even they are.
  std::size_t share_of_a_task(std::size_t groups) const {
    return tasks_.empty() ? groups : (groups + tasks_.size() - 1) / tasks_.size();
  }
  // Lets each version write `samples` completions for every place, each for a draw of its own: what
  // a policy makes of one choice of exemplars says little of it. Comes before all other draws.
  // Returns the number of groups.
  std::size_t compare(const std::vector<std::uint64_t>& versions, std::uint32_t samples);

  void given_out(const draw_id& draw, const assignment& what, std::uint64_t now_ms) {
    out_[draw] = {now_ms, what};
  }
  void came_back(const draw_id& draw) { out_.erase(draw); }
  // What is out for too long makes room for another; a comparison's is drawn once more.
  void give_up_old(std::uint64_t now_ms);
  std::size_t out() const { return out_.size(); }

 private:
  struct given_draw {
    std::uint64_t when_ms = 0;
    assignment what;
  };

  std::vector<place> places() const;
  std::size_t most_of_a_type() const;

  std::vector<task_id> tasks_;
  options options_;
  std::map<std::string, int> devices_;
  std::size_t turn_ = 0;
  std::deque<assignment> comparisons_;
  std::map<draw_id, given_draw> out_;
};

}  // namespace hone
