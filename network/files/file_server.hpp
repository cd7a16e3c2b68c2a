#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "network/channel.hpp"
#include "network/connection_threads.hpp"
#include "network/files/copy_tree.hpp"
#include "network/files/offered_folder.hpp"

namespace hone {

// Serves files to other nodes, each connection on a separate thread. Other code decides which files
// are offered and who may ask: a connection that is handed over here has been let in.
class file_server {
 public:
  // `find` returns the folder that is offered under a name, or null. It is called on the threads of
  // the connections, one at a time, and may throw std::runtime_error. A connection keeps the folder
  // that it asks for until it asks for another.
  using find_folder = std::function<std::shared_ptr<const offered_folder>(const std::string& name)>;
  explicit file_server(find_folder find, std::size_t max_connections = 512);
  // Has nodes take folders from each other: replies name the source. Call it before the first
  // connection is served.
  void spread_over_nodes() { spreads_ = true; }
  file_server(const file_server&) = delete;
  file_server& operator=(const file_server&) = delete;

  // Serves a connection until its other end leaves or has asked for nothing for ten minutes. Safe
  // on any thread; neither blocks nor throws.
  void serve(std::shared_ptr<channel> connection);

  // Returns the bytes of all pieces that were sent.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  // The file that a connection is copying, and a buffer for a piece.
  struct conversation {
    std::string name{};
    std::shared_ptr<const offered_folder> folder{};
    std::vector<char> piece{};
  };

  void answer_requests(channel& to);
  // Answers one request. Throws connection_failed.
  void answer(channel& to, const file_request& request, conversation& with);
  std::shared_ptr<const offered_folder> find(const std::string& name);
  // Returns where the other end is to take a folder from; empty: from here.
  std::string source_of(const channel& to, const file_request& request,
                        const folder_contents& contents);

  find_folder find_;
  bool spreads_ = false;
  copy_tree tree_;
  std::atomic<std::uint64_t> bytes_sent_ = 0;
  std::mutex finding_;
  connection_threads connections_;  // last: its threads use the members above
};

}  // namespace hone
