#pragma once

#include <memory>

#include "actors/activity.hpp"
#include "evaluation/variant_compiler.hpp"
#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// Turns variants into artifacts: pulls jobs for any type of device, hands artifacts to the verify
// stage (or past it, where the verdict is known), failures straight to the pool. Blocks while
// compilers run: spawn it detached.
struct compiler_state {
  compiler_state() = default;

  compile_worker::stateful_pointer<compiler_state> self = nullptr;
  std::shared_ptr<const task_table> tasks;
  compile_queue source;
  verify_queue verifiers;
  pool_actor pool;
  activity counts{"", "compiler"};
  variant_compiler compiler;

  void compile(const compile_job& job);
};

compile_worker::behavior_type compiler(compile_worker::stateful_pointer<compiler_state> self,
                                       std::string name, std::shared_ptr<const task_table> tasks,
                                       compile_queue source, verify_queue verifiers,
                                       pool_actor pool, std::uint32_t credits);

}  // namespace hone
