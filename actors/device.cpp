#include "actors/device.hpp"

#include <caf/all.hpp>

namespace hone {
namespace {

template <class Result, class Request>
caf::result<Result> answer(device_actor::stateful_pointer<device_state> self, const schema::JobHeader::Reader& header, const char* span, Request request) {
  auto& s = self->state;
  const auto t = s.tasks->find(task_id(header.getTaskId()));
  if (t == nullptr) return caf::make_error(caf::sec::runtime_error, "this node does not know the task");
  try {
    const activity::span busy(s.counts, span);
    Result result = request(*t);
    s.counts.processed();
    return result;
  } catch (const std::exception& e) {
    // The device itself cannot go on: a fresh one takes its place.
    s.counts.failed();
    self->quit(caf::make_error(caf::sec::runtime_error, e.what()));
    return caf::make_error(caf::sec::runtime_error, e.what());
  }
}

}  // namespace

device_actor::behavior_type device_shell(device_actor::stateful_pointer<device_state> self, std::string name, std::shared_ptr<const task_table> tasks, device_maker make) {
  auto& s = self->state;
  s.tasks = std::move(tasks);
  s.counts = activity(std::move(name), "device");
  try {
    s.owned = make();
  } catch (const std::exception& e) {
    self->quit(caf::make_error(caf::sec::runtime_error, e.what()));
    return device_actor::behavior_type::make_empty_behavior();
  }
  return {
      [self](verify_atom, const verify_job& job) -> caf::result<verdict_record> {
        return answer<verdict_record>(self, job->getHeader(), "verify", [&](const task& t) { return self->state.owned->verify(*job, t, 0); });
      },
      [self](measure_atom, const benchmark_job& job) -> caf::result<measurement_record> {
        return answer<measurement_record>(self, job->getHeader(), "measure", [&](const task& t) { return self->state.owned->measure(*job, t, 0); });
      },
      [self](status_atom) { return self->state.counts.report(); },
  };
}

}  // namespace hone
