#include "process/write_fence.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "process/throw_errno.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

constexpr std::uint64_t access_truncate = 1ULL << 14U;  // not in the headers of older kernels

[[noreturn]] void fail() { throw_errno("cannot confine writing to a folder"); }

}  // namespace

bool confine_writing(const std::filesystem::path& folder) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  const std::uint64_t in_folder =
      LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
      LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
      (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) | (version >= 3 ? access_truncate : 0);
  landlock_ruleset_attr all{};
  all.handled_access_fs = in_folder | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                          LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                          LANDLOCK_ACCESS_FS_MAKE_SYM;
  const unique_fd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0)));
  if (!rules) fail();
  const unique_fd beneath(::open(folder.c_str(), O_PATH | O_CLOEXEC));
  if (!beneath) fail();
  landlock_path_beneath_attr rule{};
  rule.allowed_access = in_folder;
  rule.parent_fd = beneath.get();
  if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0)
    fail();
  return true;
}

}  // namespace hone
