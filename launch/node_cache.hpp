#pragma once

#include <filesystem>

#include "process/unique_fd.hpp"

namespace hone {

// The folder of what a node has copied from its run: the one that is named, which stays, or one in
// the user's cache that is removed in the end. Those of nodes that were killed are removed as well.
class node_cache {
 public:
  // `named` may be empty. Throws std::runtime_error.
  explicit node_cache(const std::filesystem::path& named);
  ~node_cache();
  node_cache(const node_cache&) = delete;
  node_cache& operator=(const node_cache&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  bool is_removed_ = false;
  unique_fd lock_;  // held as long as the folder is in use
};

}  // namespace hone
