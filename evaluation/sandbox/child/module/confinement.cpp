#include "evaluation/sandbox/child/module/confinement.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "evaluation/sandbox/child/common/memory_limit.hpp"
#include "process/seccomp_filters.hpp"
#include "process/throw_errno.hpp"

namespace hone {
namespace {

constexpr rlim_t file_bytes = 1U << 20U;  // of memory files, the only ones that it can write

void limit(__rlimit_resource which, rlim_t value) {
  const rlimit both{value, value};
  if (setrlimit(which, &both) != 0) throw_errno("cannot set a resource limit");
}

// The process of a judge that runs as root keeps that user, who can read root's Python, without its
// rights.
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) throw_errno("cannot drop capabilities");
}

}  // namespace

void confine_module(const module_limits& limits) {
  drop_capabilities();
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, limits.address_space);
  if (limits.private_bytes != RLIM_INFINITY) limit_private_memory(limits.private_bytes);
  limit(RLIMIT_NOFILE, limits.open_files);
  limit(RLIMIT_FSIZE, file_bytes);
  if (prctl(PR_SET_DUMPABLE, 0) != 0) throw_errno("cannot forbid dumps");
  install_filter(secluding_filter());
  install_filter(reader_filter());
}

}  // namespace hone
