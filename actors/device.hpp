#pragma once

#include <memory>
#include <string>

#include "actors/activity.hpp"
#include "actors/job_tasks.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// Owns one device. Each request is a whole protocol: verify, measure, or a GPU lease, during which
// the lessee has the GPU. The mailbox is the lock between them. Blocks its thread, so it must be
// spawned detached; the device is then made and used on that thread only. If the device fails, the
// actor ends with the reason.
struct device_state {
  device_state() = default;

  job_tasks tasks;
  std::string name;  // "cuda:0"
  activity counts{"", "device"};
  std::unique_ptr<device> owned;
};

// Calls `make` on the actor's thread. The actor ends with the reason if `make` throws.
device_actor::behavior_type device_behavior(device_actor::stateful_pointer<device_state> self,
                                            std::string name,
                                            std::shared_ptr<const task_table> tasks,
                                            const device_maker& make);

}  // namespace hone
