#include "process/visible_files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <stdexcept>

#include "process/seccomp_filters.hpp"
#include "process/throw_errno.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// The set of the process, for the signal handler.
const visible_files* shown = nullptr;

// A path in normal form: absolute, without ".", ".." and empty parts. Allocates nothing, because
// the signal handler uses it.
class normal_path {
 public:
  // `folder`: the folder that a relative path belongs to, in normal form.
  normal_path(std::string_view folder, const char* path) {
    if (path[0] != '/') append(folder);
    const std::string_view text(path, strnlen(path, PATH_MAX));
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('/', at), text.size());
      const std::string_view part = text.substr(at, end - at);
      at = end + 1;
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        size_ = std::string_view(text_.data(), size_).rfind('/');
        if (size_ == std::string_view::npos) size_ = 0;
        continue;
      }
      append("/");
      append(part);
    }
  }
  // Returns an empty text if the path is too long or is the root.
  std::string_view text() const {
    return is_too_long_ ? std::string_view{} : std::string_view(text_.data(), size_);
  }

 private:
  void append(std::string_view part) {
    if (part.size() > text_.size() - size_) {
      is_too_long_ = true;
      return;
    }
    std::memcpy(text_.data() + size_, part.data(), part.size());
    size_ += part.size();
  }

  std::array<char, PATH_MAX> text_{};
  std::size_t size_ = 0;
  bool is_too_long_ = false;
};

std::string normal(const fs::path& path) {
  const std::string folder = fs::current_path().string();
  return std::string(normal_path(folder, path.c_str()).text());
}

// Returns the files that are meant by `path`: itself, or all files below it.
std::vector<fs::path> files_below(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(path, fs::directory_options::follow_directory_symlink)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  return found;
}

// Writes all bytes. Returns 0, or a negative error number.
long put_bytes(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -EIO;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

long error_or(long result) { return result < 0 ? -errno : result; }

}  // namespace

visible_files::~visible_files() {
  if (contents_ != nullptr) munmap(const_cast<char*>(contents_), contents_bytes_);
}

void visible_files::read(const std::vector<fs::path>& folders, std::uint64_t max_bytes) {
  folder_ = fs::current_path().string();
  const unique_fd all(memfd_create("visible-files", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!all) throw_errno("cannot keep files in memory");
  for (const fs::path& folder : folders) {
    for (const fs::path& path : files_below(folder)) {
      file added;
      added.path = normal(path);
      added.begin = contents_bytes_;
      const unique_fd source(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!source || fstat(source.get(), &added.facts) != 0)
        throw_errno(("cannot read " + path.string()).c_str());
      std::string bytes(static_cast<std::size_t>(added.facts.st_size), '\0');
      if (pread(source.get(), bytes.data(), bytes.size(), 0) != added.facts.st_size)
        throw std::runtime_error("cannot read all of " + path.string());
      contents_bytes_ += bytes.size();
      if (contents_bytes_ > max_bytes)
        throw std::runtime_error("the files below " + folder.string() + " have more than " +
                                 std::to_string(max_bytes >> 20U) + " MiB");
      if (put_bytes(all.get(), bytes) != 0) throw_errno("cannot keep files in memory");
      files_.push_back(std::move(added));
    }
  }
  std::sort(files_.begin(), files_.end(),
            [](const file& a, const file& b) { return a.path < b.path; });
  if (contents_bytes_ == 0) return;
  // Without the seals, a fork could change the files of later forks. The kernel is busy while it
  // holds pages of the file itself, for moments; each attempt waits up to 150 ms for it.
  constexpr int max_attempts = 20;
  for (int attempt = 1;
       fcntl(all.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0; ++attempt) {
    if (errno != EBUSY || attempt == max_attempts) throw_errno("cannot seal files in memory");
  }
  void* mapped = mmap(nullptr, contents_bytes_, PROT_READ, MAP_SHARED, all.get(), 0);
  if (mapped == MAP_FAILED) throw_errno("cannot map files in memory");
  contents_ = static_cast<const char*>(mapped);
}

void visible_files::add_opened(const fs::path& path) {
  unique_fd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) throw_errno(("cannot open " + path.string()).c_str());
  opened_.push_back({normal(path), std::move(descriptor)});
}

void visible_files::hide_others() const {
  shown = this;
  struct sigaction action {};
  action.sa_sigaction = on_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, nullptr) != 0) throw_errno("cannot handle SIGSYS");
  install_filter(nameless_filter());
}

void visible_files::on_call(int /*signal*/, siginfo_t* info, void* context) {
  const int before = errno;
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const std::array<long long, 4> arguments = {registers[REG_RDI], registers[REG_RSI],
                                              registers[REG_RDX], registers[REG_R10]};
  registers[REG_RAX] = shown->answer(info->si_syscall, arguments.data());
  errno = before;
}

long visible_files::answer(int call, const long long* arguments) const {
  // Calls that end in "at" name a folder first, to which relative paths belong.
  const bool is_at = call == SYS_openat || call == SYS_newfstatat;
  const auto* path = reinterpret_cast<const char*>(arguments[is_at ? 1 : 0]);
  if (path == nullptr) return -EFAULT;
  if (call == SYS_newfstatat && (arguments[3] & AT_EMPTY_PATH) != 0 && path[0] == '\0')
    return error_or(syscall(SYS_fstat, arguments[0], arguments[2]));
  if (is_at && path[0] != '/' && static_cast<int>(arguments[0]) != AT_FDCWD) return -ENOENT;
  switch (call) {
    case SYS_open:
    case SYS_openat:
      return open_file(path, static_cast<int>(arguments[is_at ? 2 : 1]));
    case SYS_stat:
    case SYS_lstat:
    case SYS_newfstatat:
      return find_facts(path, reinterpret_cast<struct stat*>(arguments[is_at ? 2 : 1]));
    case SYS_access: {
      struct stat unused {};
      return find_facts(path, &unused);
    }
    case SYS_unlink:
    case SYS_unlinkat:
      return 0;  // a file that was created has no name
    default:
      return -ENOENT;
  }
}

const visible_files::file* visible_files::find(std::string_view path) const {
  const auto found =
      std::lower_bound(files_.begin(), files_.end(), path,
                       [](const file& f, std::string_view wanted) { return f.path < wanted; });
  return found != files_.end() && found->path == path ? &*found : nullptr;
}

const visible_files::opened_file* visible_files::find_opened(std::string_view path) const {
  const auto found = std::find_if(opened_.begin(), opened_.end(),
                                  [&](const opened_file& f) { return f.path == path; });
  return found != opened_.end() ? &*found : nullptr;
}

long visible_files::open_file(const char* path, int flags) const {
  const normal_path wanted(folder_, path);
  if ((flags & O_CREAT) != 0) return error_or(memfd_create("created", MFD_CLOEXEC));
  if (const opened_file* found = find_opened(wanted.text())) {
    const int copy = dup(found->descriptor.get());
    if (copy >= 0) lseek(copy, 0, SEEK_SET);
    return error_or(copy);
  }
  const file* found = find(wanted.text());
  if (found == nullptr) return -ENOENT;
  const int copy = memfd_create("file", MFD_CLOEXEC);
  if (copy < 0) return -errno;
  const std::string_view bytes(contents_ + found->begin,
                               static_cast<std::size_t>(found->facts.st_size));
  if (const long failed = put_bytes(copy, bytes); failed != 0) {
    close(copy);
    return failed;
  }
  lseek(copy, 0, SEEK_SET);
  return copy;
}

long visible_files::find_facts(const char* path, struct stat* into) const {
  const normal_path wanted(folder_, path);
  if (const opened_file* found = find_opened(wanted.text()))
    return error_or(syscall(SYS_fstat, found->descriptor.get(), into));
  const file* found = find(wanted.text());
  if (found == nullptr) return -ENOENT;
  std::memcpy(into, &found->facts, sizeof *into);
  return 0;
}

}  // namespace hone
