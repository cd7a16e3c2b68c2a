#pragma once

#include <memory>
#include <string>

#include "actors/activity.hpp"
#include "actors/job_tasks.hpp"
#include "actors/wiring.hpp"
#include "evaluation/variant_compiler.hpp"
#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// Compiles variants into artifacts, for every device type. Sends an artifact to the verify queue,
// and its own queue an evaluation of what failed. Blocks its thread while a compiler runs, so it
// must be spawned detached.
struct compiler_state {
  compiler_state() = default;

  compiler_actor::stateful_pointer<compiler_state> self = nullptr;
  job_tasks tasks;
  node_wiring wiring;
  activity counts{"", "compiler"};
  variant_compiler compiler;

  void compile(const compile_job& job);
};

// `credits` is the number of jobs that the compiler holds at a time.
compiler_actor::behavior_type compiler_behavior(
    compiler_actor::stateful_pointer<compiler_state> self, std::string name,
    std::shared_ptr<const task_table> tasks, node_wiring wiring, std::uint32_t credits);

}  // namespace hone
