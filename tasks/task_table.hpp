#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task_file.hpp"

namespace hone {

// The tasks of a run. Built once, then shared read-only by all actors of a node. The find functions
// return nullptr if there is no such task.
class task_table {
 public:
  void add(task t, task_role role = task_role::learned) {
    auto owned = std::make_shared<const task>(std::move(t));
    by_id_[owned->id] = owned;
    by_name_.emplace(owned->name, owned);
    order_.push_back(owned);
    roles_[owned->id] = role;
  }
  // Returns the role of a task of the table.
  task_role role_of(task_id id) const { return roles_.at(id); }
  bool is_held_out(task_id id) const { return role_of(id) == task_role::held_out; }
  // Returns the number of tasks that have this role.
  std::size_t count(task_role role) const {
    return static_cast<std::size_t>(std::count_if(
        roles_.begin(), roles_.end(), [role](const auto& one) { return one.second == role; }));
  }
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
  std::map<task_id, task_role> roles_;
};

}  // namespace hone
