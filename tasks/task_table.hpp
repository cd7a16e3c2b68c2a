#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task_file.hpp"

namespace hone {

// The tasks of a run. Built once, then shared read-only by all actors of a node. The find functions
// return nullptr if there is no such task.
class task_table {
 public:
  // A run does not learn from a task that is held out: it only shows what the policy has learned.
  void add(task t, bool is_held_out = false) {
    auto owned = std::make_shared<const task>(std::move(t));
    by_id_[owned->id] = owned;
    by_name_.emplace(owned->name, owned);
    order_.push_back(owned);
    if (is_held_out) held_out_.insert(owned->id);
  }
  bool is_held_out(task_id id) const { return held_out_.contains(id); }
  std::shared_ptr<const task> find(task_id id) const {
    const auto found = by_id_.find(id);
    return found != by_id_.end() ? found->second : nullptr;
  }
  std::shared_ptr<const task> find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? found->second : nullptr;
  }
  const std::vector<std::shared_ptr<const task>>& all() const { return order_; }

 private:
  std::map<task_id, std::shared_ptr<const task>> by_id_;
  std::map<std::string, std::shared_ptr<const task>, std::less<>> by_name_;  // the first of a name
  std::vector<std::shared_ptr<const task>> order_;
  std::set<task_id> held_out_;
};

}  // namespace hone
