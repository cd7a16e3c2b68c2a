#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launch/cluster/cluster_file.hpp"

namespace hone {

enum class node_phase {
  waiting,  // for a machine, a queue or an image
  running,
  ended,  // although it is wanted
};
const char* name_of(node_phase phase);

// A node as its launcher sees it.
struct launched_node {
  std::string name;
  std::string where;  // a host, a process or a job; for users to read
  node_phase phase = node_phase::waiting;
  std::string detail;  // why it waits, or the last lines of the log of a node that has ended
};

// What all pools of a run have in common, and one pool's identity.
struct launch_context {
  std::filesystem::path run;       // the run's folder, absolute
  std::string join;                // HOST:PORT of the head
  std::filesystem::path identity;  // folder with ca.pem, certificate.pem and key.pem; empty: none
  std::string program = "hone";    // what local nodes of a pool without `hone` run
  std::chrono::milliseconds grace{30'000};  // between SIGTERM and SIGKILL
};

// Starts and stops the nodes of one pool. What was started is remembered in the run's folder
// (pool_folder.hpp), so that a launcher of another process can go on. Functions throw
// std::runtime_error with a message for users.
class launcher {
 public:
  virtual ~launcher() = default;
  // Starts and stops nodes so that exactly POOL-0 .. POOL-(count-1) run or wait to run. A node that
  // has ended is started again. A stopped node gets SIGTERM, and SIGKILL after the grace. Returns
  // when the nodes that are not wanted have ended. With a count of 0 nothing but logs stays behind.
  // Goes on with the other nodes if one of them fails, and throws in the end.
  virtual void scale(std::int64_t count) = 0;
  // Returns the nodes that are wanted, by number.
  virtual std::vector<launched_node> list() = 0;
  // Returns what scale() would run if there were no nodes yet: command lines, scripts or manifests.
  // Touches nothing.
  virtual std::string plan(std::int64_t count) const = 0;
};

std::unique_ptr<launcher> make_launcher(const node_pool& pool, const launch_context& context);

// Returns the command of a node: HONE node --join ADDRESS ... `identity` is the identity's folder
// on the node's machine; empty for none.
std::vector<std::string> node_command(const node_pool& pool, const launch_context& context,
                                      const std::string& name, const std::string& identity);

// The problems of single nodes, which are thrown together after all nodes have had their turn.
class problem_list {
 public:
  void add(const std::string& problem);
  bool empty() const { return text_.empty(); }
  // Throws std::runtime_error with one line per problem if there is any.
  void throw_if_any() const;

 private:
  std::string text_;
};

}  // namespace hone
