#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct node_options {
  std::string name;
  std::vector<planned_device> devices;
  std::size_t compilers = 1;
  std::uint32_t compiler_credits = 2;
  std::function<void(const std::string&)> log;
};

// Where a node's workers take work from and bring results to: its own, or those of the node that it
// joined.
struct node_wiring {
  compile_queue compiles;
  verify_queue verifies;
  benchmark_queue benchmarks;
  pool_actor pool;
  node_actor uplink;  // of the node that was joined; empty on the first one
};

// Spawns and restarts a node's workers: a compiler, or a device with its verifier and benchmarker,
// that dies comes back after a growing pause, and its jobs are done again elsewhere meanwhile. Lets
// other nodes join, and answers those who ask for the status.
struct node_state {
  node_state() = default;

  struct kept_device {
    planned_device what;
    caf::actor_addr device;
    std::uint32_t restarts = 0;
    bool announced = false;
  };
  struct kept_compiler {
    caf::actor_addr worker;
    std::uint32_t restarts = 0;
  };

  node_actor::stateful_pointer<node_state> self = nullptr;
  node_options options;
  node_wiring wiring;
  std::shared_ptr<const task_table> tasks;
  telemetry_actor telemetry;
  std::vector<kept_device> devices;
  std::vector<kept_compiler> compilers;
  std::map<caf::actor_addr, std::vector<device_type_record>>
      joined;  // node actors, and a record for each device that they announced

  void start_device(std::size_t index);
  void start_compiler(std::size_t index);
  void announce(const device_type_record& type, std::int32_t by);
  void hear_of_device(const caf::actor& from, const device_type_record& type, std::int32_t by);
  device_actor find_device(
      const std::string& name) const;  // empty: there is none, or it is being started again
  void lost(const caf::down_msg& down);
  void log(const std::string& line) const;
};

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, node_options options,
                               node_wiring wiring, std::shared_ptr<const task_table> tasks,
                               telemetry_actor telemetry);

// Why a node that asks to join must be refused, naming both sides' versions; empty: it may.
std::string find_join_problem(const join_record& request);

}  // namespace hone
