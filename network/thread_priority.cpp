#include "network/thread_priority.hpp"

#include <sys/resource.h>
#include <unistd.h>

namespace hone {

void let_messages_pass() {
  constexpr int niceness = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
}

}  // namespace hone
