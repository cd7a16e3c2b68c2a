#include "process/inspection.hpp"

#include <sys/prctl.h>

#include "process/throw_errno.hpp"

namespace hone {

void forbid_inspection() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) throw_errno("cannot forbid inspection");
}

}  // namespace hone
