#include "network/thread_priority.hpp"

#include <sys/resource.h>
#include <unistd.h>

namespace hone {

void let_messages_pass(thread_work work) {
  const pid_t first_thread = getpid();
  const pid_t thread = gettid();
  if (thread == first_thread) return;  // a test's, which runs all actors itself
  const int base = getpriority(PRIO_PROCESS, static_cast<id_t>(first_thread));
  const int niceness = work == thread_work::run ? 5 : 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(thread), base + niceness);
}

}  // namespace hone
