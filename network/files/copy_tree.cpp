#include "network/files/copy_tree.hpp"

#include <algorithm>

namespace hone {
namespace {

// Nodes that take a folder from the same one. A large folder takes long to send, so that passing it
// on pays earlier.
constexpr std::size_t children = 4;
constexpr std::size_t children_of_large = 2;
constexpr std::uint64_t large_bytes = 1'000'000'000;
constexpr std::size_t max_folders = 8;

}  // namespace

std::string copy_tree::parent_of(const std::string& folder, std::uint64_t bytes,
                                 const std::string& child) {
  const std::scoped_lock guard(lock_);
  const auto at = std::find_if(branches_.begin(), branches_.end(),
                               [&](const branch& one) { return one.folder == folder; });
  if (at == branches_.end()) {
    if (branches_.size() == max_folders) branches_.pop_front();
    branches_.push_back({folder, {}});
  } else {
    std::rotate(at, at + 1, branches_.end());
  }
  std::vector<node>& nodes = branches_.back().nodes;
  std::vector<const node*> sources;  // that have asked before the child
  const auto known = std::find_if(nodes.begin(), nodes.end(), [&](const node& one) {
    if (one.address == child) return true;
    if (one.is_source) sources.push_back(&one);
    return false;
  });
  const std::size_t width = bytes < large_bytes ? children : children_of_large;
  const std::string parent =
      sources.size() < width ? std::string() : sources[(sources.size() - width) / width]->address;
  if (known == nodes.end()) nodes.push_back({child});
  return parent;
}

void copy_tree::forget(const std::string& folder, const std::string& address) {
  const std::scoped_lock guard(lock_);
  for (branch& one : branches_) {
    if (one.folder != folder) continue;
    for (node& other : one.nodes) other.is_source = other.is_source && other.address != address;
  }
}

}  // namespace hone
