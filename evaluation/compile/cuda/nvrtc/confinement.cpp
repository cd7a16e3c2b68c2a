#include "evaluation/compile/cuda/nvrtc/confinement.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/throw_errno.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

constexpr std::uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t writing =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr std::uint64_t everything =
    reading | writing | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

void allow(int rules, const std::string& folder, std::uint64_t what) {
  const unique_fd opened(open(folder.c_str(), O_PATH | O_CLOEXEC));
  landlock_path_beneath_attr below{};
  below.allowed_access = what;
  below.parent_fd = opened.get();
  if (!opened ||
      syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) != 0) {
    throw_errno(("cannot confine the compiler to " + folder).c_str());
  }
}

}  // namespace

void confine_files(const std::vector<std::string>& readable, const std::string& own) {
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = everything;
  const unique_fd rules(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!rules) return;
  for (const std::string& folder : readable) allow(rules.get(), folder, reading);
  allow(rules.get(), own, reading | writing);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    throw_errno("cannot confine the compiler's files");
  }
}

}  // namespace hone
