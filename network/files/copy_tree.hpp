#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace hone {

// From whom nodes take the pieces of a folder, so that the first node does not send the whole of it
// to each: the first few that ask take them from the first node, and each node passes them on to as
// many others, in the order in which they asked. Safe on any thread.
class copy_tree {
 public:
  // Returns the address of the node that passes the folder on to `child`, or an empty text for the
  // first node. A child that asks again gets the same, unless a node was forgotten. A parent has
  // always asked before its children, so that no two wait for each other.
  std::string parent_of(const std::string& folder, std::uint64_t bytes, const std::string& child);
  // A node does not pass the folder on: children that ask from now on get other nodes.
  void forget(const std::string& folder, const std::string& address);

 private:
  struct node {
    std::string address;
    bool is_source = true;  // false: it was forgotten
  };
  struct branch {
    std::string folder;
    std::vector<node> nodes;  // in the order in which they asked first
  };
  std::mutex lock_;              // guards the next one
  std::deque<branch> branches_;  // of the folders that were asked for last
};

}  // namespace hone
