#include "launch/node_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <stdexcept>

#include "messages/ids.hpp"
#include "process/user_cache.hpp"

namespace hone {
namespace {

constexpr const char* lock_file = "in-use";

// Returns the lock of a folder; empty if somebody else holds it.
unique_fd lock(const std::filesystem::path& folder) {
  unique_fd file(open((folder / lock_file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return file;
}

std::filesystem::path nodes_in_cache() {
  const std::filesystem::path cache = user_cache();
  return cache.empty() ? std::filesystem::temp_directory_path() / "hone-nodes" : cache / "nodes";
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw std::runtime_error(folder.string() + ": " + problem.message());
}

void remove_unused(const std::filesystem::path& all) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(all, ignored)) {
    if (!entry.is_directory()) continue;
    if (const unique_fd held = lock(entry.path()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace

node_cache::node_cache(const std::filesystem::path& named)
    : folder_(named), is_removed_(named.empty()) {
  unique_fd starting;  // no other node removes the folder before it has its lock
  if (is_removed_) {
    const std::filesystem::path all = nodes_in_cache();
    make_folder(all);
    starting.reset(open((all / "starting").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (starting) flock(starting.get(), LOCK_EX);
    remove_unused(all);
    folder_ = all / to_hex(random_bits(), random_bits());
  }
  make_folder(folder_);
  folder_ = std::filesystem::absolute(folder_);
  lock_ = lock(folder_);
  if (!lock_)
    throw std::runtime_error(folder_.string() +
                             ": cannot be written, or is in use by another node");
}

node_cache::~node_cache() {
  std::error_code ignored;
  if (is_removed_) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace hone
