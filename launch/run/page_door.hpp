#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "network/channel.hpp"
#include "network/connection_threads.hpp"
#include "process/temporary_folder.hpp"

namespace hone {

// Shows a run's pages to `hone ui --connect`. The first connection starts a hone-ui process, which
// reads the run's folder and listens on a Unix socket; its crash ends no run. A connection first
// gets the pages' token in a line, and is then relayed to that socket. Each connection has a
// thread.
class page_door {
 public:
  explicit page_door(std::filesystem::path run);
  // Ends the connections and the process.
  ~page_door();
  page_door(const page_door&) = delete;
  page_door& operator=(const page_door&) = delete;

  // Serves a connection until it ends or idles for long. Safe on any thread; neither blocks nor
  // throws.
  void serve(std::shared_ptr<channel> connection);

 private:
  // Keeps the process running; it dies with the thread that starts it.
  void keep_viewer();
  // Waits for the process, and returns its token; empty if it does not start.
  std::string wait_for_token();
  void relay(channel& connection);

  std::filesystem::path run_;
  temporary_folder folder_{"pages"};
  std::string socket_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::string token_;  // empty while there is no process
  bool stops_ = false;
  std::thread keeper_;
  connection_threads connections_;
};

}  // namespace hone
