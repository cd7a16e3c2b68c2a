#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "launch/system.hpp"
#include "network/files/folder_copy.hpp"

namespace hone {

// Copies that a node takes from its head and passes on to other nodes, meanwhile and afterwards: it
// listens for the nodes on a separate port. Safe on any thread.
class copy_relay {
 public:
  // `listen`: HOST:PORT; empty: any port, of all addresses of this machine or, if the head is on it
  // or there is no identity, of the loopback address; "no": nothing is passed on, and everything
  // comes from the head. The same holds, and is logged, if it cannot listen.
  copy_relay(head_address head, std::string name, const std::string& listen,
             std::function<void(const std::string&)> log);
  ~copy_relay();

  // Returns where copies come from.
  copy_sources sources() const;

 private:
  class door;

  head_address head_;
  std::string name_;
  std::shared_ptr<door> door_;  // shared with the copy sources; null: nothing is passed on
};

}  // namespace hone
