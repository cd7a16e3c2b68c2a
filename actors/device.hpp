#pragma once

#include <functional>
#include <memory>

#include "actors/activity.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// One GPU, reserved core or simulated device, with everything that belongs to it. Its requests are
// whole protocols, and its mailbox is the lock between them: verify, measure, and lease, during
// which the sender has the GPU. Blocks: spawn it detached, so that all of it lives on one thread.
struct device_state {
  device_state() = default;

  std::shared_ptr<const task_table> tasks;
  activity counts{"", "device"};
  std::unique_ptr<device> owned;
};


device_actor::behavior_type device_shell(device_actor::stateful_pointer<device_state> self,
                                         std::string name, std::shared_ptr<const task_table> tasks,
                                         device_maker make);

}  // namespace hone
