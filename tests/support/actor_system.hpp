#pragma once

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <optional>
#include <string>

#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone::testing_support {

// Returns the configuration of the tests' actor systems: two threads, and all types of Hone's
// messages. It is never deleted, because CAF may use it for as long as the process lives.
inline caf::actor_system_config& actor_settings() {
  static auto* const config = [] {
    auto* c = new caf::actor_system_config;
    c->add_message_types<caf::id_block::hone>();
    c->set("scheduler.max-threads", std::size_t{2});
    return c;
  }();
  return *config;
}

// Returns a table of one real task, softmax. With `id`, the task has that id, for tests whose
// records are made by hand.
inline task_table table_of_softmax(const std::optional<task_id>& id = std::nullopt) {
  task t = load_task(std::string(HONE_SOURCE_DIR) + "/configs/tasks/softmax.toml");
  if (id) t.id = *id;
  task_table table;
  table.add(std::move(t));
  return table;
}

}  // namespace hone::testing_support
