#include "actors/device.hpp"

#include <caf/all.hpp>

#include "policy/work_progress.hpp"

namespace hone {
namespace {

// Serves a request with the device. Returns an error for an unknown task. If the device throws, the
// actor ends as well.
template <class Result, class Request>
caf::result<Result> answer(device_actor::stateful_pointer<device_state> self,
                           const schema::JobHeader::Reader& header, const char* span,
                           Request request) {
  auto& s = self->state;
  try {
    const auto t = s.tasks.find(header);
    if (t == nullptr)
      return caf::make_error(caf::sec::runtime_error, "this node does not have the task");
    const activity::span busy(s.counts, span);
    Result result = request(*t);
    s.counts.processed();
    return result;
  } catch (const std::exception& e) {
    // The device itself has failed; its supervisor starts another one.
    s.counts.failed();
    self->quit(caf::make_error(caf::sec::runtime_error, e.what()));
    return caf::make_error(caf::sec::runtime_error, e.what());
  }
}

// Grants the sender its GPU lease and waits until the lease ends. A lessee that died no longer uses
// the GPU, so the actor continues. A lessee that makes no progress for `max_ms` may still compute,
// so measurements at the same time would be meaningless: the actor ends, and its supervisor reports
// the reason.
caf::result<done_atom> grant_lease(device_actor::stateful_pointer<device_state> self,
                                   std::uint64_t number, std::uint32_t max_ms) {
  auto& s = self->state;
  const auto lessee = caf::actor_cast<lessee_actor>(self->current_sender());
  caf::result<done_atom> answer = done_atom_v;
  const auto give_up = [&](const caf::error& e) {
    s.counts.failed();
    answer = e;
  };
  const progress_counter& progress = progress_on(s.name);
  caf::scoped_actor waiting(self->system());
  {
    const activity::span leased(s.counts, "leased", activity::kind::waiting);
    waiting->monitor(lessee);
    waiting->send(lessee, grant_atom_v, number);
    for (bool is_over = false; !is_over;) {
      const std::uint64_t before = progress;
      waiting->receive([&](done_atom) { is_over = true; },
                       [&](const caf::error& e) {
                         is_over = true;
                         give_up(e);
                       },
                       [&](const caf::down_msg& down) {
                         is_over = true;
                         give_up(down.reason);
                       },
                       caf::after(std::chrono::milliseconds(max_ms)) >>
                           [&] {
                             if (progress != before) return;
                             is_over = true;
                             const std::string problem =
                                 "the policy has the GPU's lease and has made no progress for " +
                                 std::to_string(max_ms) + " ms";
                             give_up(caf::make_error(caf::sec::request_timeout));
                             self->quit(caf::make_error(caf::sec::runtime_error, problem));
                           });
    }
  }
  s.counts.set_number("leased_seconds", s.counts.waited_seconds());
  return answer;
}

}  // namespace

device_actor::behavior_type device_behavior(device_actor::stateful_pointer<device_state> self,
                                            std::string name,
                                            std::shared_ptr<const task_table> tasks,
                                            const device_maker& make) {
  auto& s = self->state;
  s.tasks = job_tasks(std::move(tasks));
  s.name = name.substr(name.rfind(' ') + 1);
  s.counts = activity(std::move(name), "device");
  try {
    s.owned = make();
  } catch (const std::exception& e) {
    self->quit(caf::make_error(caf::sec::runtime_error, e.what()));
    return device_actor::behavior_type::make_empty_behavior();
  }
  return {
      [self](verify_atom, const verify_job& job) -> caf::result<verdict_record> {
        return answer<verdict_record>(self, job->getHeader(), "verify", [&](const task& t) {
          return self->state.owned->verify(*job, t, 0);
        });
      },
      [self](measure_atom, const benchmark_job& job) -> caf::result<measurement_record> {
        return answer<measurement_record>(self, job->getHeader(), "measure", [&](const task& t) {
          return self->state.owned->measure(*job, t, 0);
        });
      },
      [self](lease_atom, std::uint64_t number, std::uint32_t max_ms) {
        return grant_lease(self, number, max_ms);
      },
      [self](status_atom) { return self->state.counts.report(); },
  };
}

}  // namespace hone
