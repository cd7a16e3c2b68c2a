#include "actors/job_tasks.hpp"

namespace hone {

std::shared_ptr<const task> job_tasks::find(const schema::JobHeader::Reader& header) {
  const task_id id(header.getTaskId());
  if (auto known = of_run_->find(id)) return known;
  if (!header.hasTask()) return nullptr;
  const auto found = late_.find(id);
  if (found != late_.end()) return found->second;
  if (late_.size() == max_kept) {
    late_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(id);
  return late_[id] = std::make_shared<const task>(from_record(header.getTask()));
}

}  // namespace hone
