#pragma once

#include <deque>
#include <map>
#include <memory>

#include "messages/schema/pipeline.capnp.h"
#include "tasks/task_table.hpp"

namespace hone {

// Finds the task of a job: one of the run, or a late one, which its jobs carry. Keeps the late
// tasks that it met last. Belongs to one worker.
class job_tasks {
 public:
  explicit job_tasks(std::shared_ptr<const task_table> of_run = nullptr)
      : of_run_(std::move(of_run)) {}

  // Returns null if this node does not have the task. Throws format_error if the task that the job
  // carries cannot be read.
  std::shared_ptr<const task> find(const schema::JobHeader::Reader& header);

 private:
  static constexpr std::size_t max_kept = 256;

  std::shared_ptr<const task_table> of_run_;
  std::map<task_id, std::shared_ptr<const task>> late_;
  std::deque<task_id> order_;  // of late_, the oldest first
};

}  // namespace hone
