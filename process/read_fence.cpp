#include "process/read_fence.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "process/throw_errno.hpp"

namespace hone {
namespace {

constexpr std::uint64_t of_file = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
constexpr std::uint64_t of_folder = of_file | LANDLOCK_ACCESS_FS_READ_DIR;

bool add_rule(int fence, int beneath, std::uint64_t access) {
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = beneath;
  return ::syscall(SYS_landlock_add_rule, fence, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(),
                          "cannot make a rule for reading " + path.string());
}

}  // namespace

unique_fd make_read_fence(const std::vector<std::filesystem::path>& readable) {
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
    return {};
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = of_folder;
  unique_fd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!rules) throw_errno("cannot make rules for reading files");
  for (const std::filesystem::path& path : readable) {
    const unique_fd beneath(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!beneath && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) continue;
    if (!beneath) fail(path);
    const bool is_folder = std::filesystem::is_directory(path);
    if (!add_rule(rules.get(), beneath.get(), is_folder ? of_folder : of_file)) fail(path);
  }
  return rules;
}

bool admit_own_facts(int fence) {
  const int own = ::open("/proc/self", O_PATH | O_CLOEXEC);
  const bool is_added = own >= 0 && add_rule(fence, own, of_folder);
  close(own);
  return is_added;
}

std::vector<std::filesystem::path> files_of_python(const std::filesystem::path& python) {
  std::vector<std::filesystem::path> readable = {"/usr",
                                                 "/lib",
                                                 "/lib64",
                                                 "/opt",
                                                 "/dev/null",
                                                 "/dev/urandom",
                                                 "/dev/zero",
                                                 "/etc/ld.so.cache",
                                                 "/etc/localtime",
                                                 "/etc/mime.types",
                                                 "/sys/devices/system/cpu",
                                                 "/proc/cpuinfo",
                                                 "/proc/meminfo",
                                                 "/proc/stat",
                                                 "/proc/version",
                                                 "/proc/sys/vm"};
  // An interpreter lies in PREFIX/bin. That of a virtual environment is a link.
  std::error_code ignored;
  for (std::filesystem::path at = python; !at.empty();) {
    const std::filesystem::path folder = at.parent_path();
    readable.push_back(folder.filename() == "bin" ? folder.parent_path() : folder);
    if (!std::filesystem::is_symlink(at, ignored)) break;
    at = at.parent_path() / std::filesystem::read_symlink(at, ignored);
  }
  return readable;
}

}  // namespace hone
