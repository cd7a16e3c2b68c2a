#include "launch/node_cache.hpp"

#include <stdexcept>

#include "messages/ids.hpp"
#include "process/file_lock.hpp"
#include "process/user_cache.hpp"

namespace hone {
namespace {

// Returns the lock of a node's folder; empty if another node holds it.
unique_fd lock_folder(const std::filesystem::path& folder) {
  return try_lock_file(folder / "in-use");
}

std::filesystem::path nodes_in_cache() {
  const std::filesystem::path cache = user_cache();
  return cache.empty() ? std::filesystem::temp_directory_path() / "hone-nodes" : cache / "nodes";
}

void remove_unused(const std::filesystem::path& all) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(all, ignored)) {
    if (!entry.is_directory()) continue;
    try {
      if (const unique_fd held = lock_folder(entry.path()))
        std::filesystem::remove_all(entry.path(), ignored);
    } catch (const std::runtime_error&) {
      // It belongs to another user.
    }
  }
}

}  // namespace

node_cache::node_cache(const std::filesystem::path& named)
    : folder_(named), is_removed_(named.empty()) {
  unique_fd starting;  // no other node removes the folder before it has its lock
  if (is_removed_) {
    const std::filesystem::path all = nodes_in_cache();
    std::filesystem::create_directories(all);
    starting = lock_file(all / "starting");
    remove_unused(all);
    folder_ = all / to_hex(random_bits(), random_bits());
  }
  std::filesystem::create_directories(folder_);
  folder_ = std::filesystem::absolute(folder_);
  lock_ = lock_folder(folder_);
  if (!lock_) throw std::runtime_error(folder_.string() + ": is in use by another node");
}

node_cache::~node_cache() {
  std::error_code ignored;
  if (is_removed_) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace hone
