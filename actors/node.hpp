#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/device_shares.hpp"
#include "actors/wiring.hpp"
#include "evaluation/devices.hpp"
#include "messages/interfaces.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// The kinds of devices of a node or a run. Simulated devices make their scores up.
struct device_kinds {
  bool has_real = false;
  bool has_simulated = false;

  device_kinds with(const device_kinds& others) const {
    return {has_real || others.has_real, has_simulated || others.has_simulated};
  }
};

struct node_options {
  std::size_t compilers = 1;
  std::uint32_t compiler_credits = 2;
  // Lets nodes join whose devices are simulated where this run's are real, or the other way round.
  bool mixes_simulation = false;

  // The rest is set by the run, not by its configuration.
  bool needs_baselines = false;  // keeps nodes out that time none
  std::string name;
  std::vector<planned_device> devices;
  device_kinds kinds_of_scores;  // of the devices that the pool's scores are from
  generation_plan generation;    // of a joined node; the first one's generators are the run's
  std::string configuration;     // of the run, as TOML
  // Settings with which a joined node runs generators, except the number of the first one; empty:
  // it may have none.
  generator_setup_record setup;
  // Called when a joined node brings the first device of a type.
  std::function<void(const std::string& device_type)> on_new_type;
  std::function<void(const std::string&)> log;
};

// The head's reply to a node that may join.
using join_answer = caf::result<compile_queue_actor, verify_queue_actor, benchmark_queue_actor,
                                pool_actor, std::vector<task_record>, std::string>;

// Starts and supervises a node's workers: compilers, devices with their verifiers and benchmarkers
// and, on a joined node, generators with their fetcher. What failed is started again after a pause,
// which grows with every restart. Lets other nodes join, and answers requests for the status. A
// node that has lost its run keeps its devices without workers, until it has joined again.
struct node_state {
  node_state() = default;
  // Ends the actors that have dedicated threads, because nothing else ends them.
  ~node_state();
  node_state(const node_state&) = delete;
  node_state& operator=(const node_state&) = delete;

  struct supervised_device {
    planned_device plan;
    // Kept by the handle: a device without workers would end if nobody held it.
    device_actor device{};
    // Its verifier and benchmarker, and earlier ones that still finish what they have.
    std::vector<caf::actor> workers{};
    std::uint32_t worker_restarts = 0;
    std::uint32_t restarts = 0;
    bool is_announced = false;
    bool is_wanted = true;  // false: it ends as soon as its workers have ended
  };
  struct supervised_compiler {
    caf::actor_addr compiler;
    std::uint32_t restarts = 0;
  };
  struct supervised_generator {
    caf::actor_addr generator{};
    std::uint32_t restarts = 0;
  };
  enum class supervised : std::uint8_t { device, workers, compiler, generator, fetcher };

  working_node_actor::stateful_pointer<node_state> self = nullptr;
  node_options options;
  node_wiring wiring;
  std::shared_ptr<const task_table> tasks;
  telemetry_actor telemetry;
  std::vector<supervised_device> devices;
  std::vector<supervised_compiler> compilers;
  std::vector<supervised_generator> generators;
  generation_plan generation;
  fetcher_actor fetcher;  // empty without generators, and without a run
  std::uint32_t fetcher_restarts = 0;
  // Number of the next generator of a joined node: generators draw from separate random streams,
  // and the first node has fewer generators.
  std::uint64_t next_replica = 1000;
  std::set<std::string> types_of_joined;  // that joined nodes have had devices of
  device_kinds kinds_of_joined;           // that they have had: their scores stay in the pool
  struct joined_node {
    caf::actor handle;
    std::string name;
    std::vector<device_type_record> devices;       // one for each that is at work
    std::map<std::string, std::uint32_t> there{};  // most of a type that were at work
    std::uint32_t at_work(const std::string& type) const;
  };
  std::map<caf::actor_addr, joined_node> joined;
  bool has_run = true;       // false: it is lost, and there are no workers
  bool is_retiring = false;  // ends when no worker has a job any more
  std::vector<caf::typed_response_promise<done_atom>> goodbyes;  // wait for the joined nodes

  void start_device(std::size_t index);
  void start_workers(std::size_t index);
  void start_compiler(std::size_t index);
  void start_generators();
  void start_generator(std::size_t index);
  // Tells a generator from earlier ones on its device.
  std::string number_of(std::size_t index) const;
  void stop_generators();
  void revive(supervised kind, std::size_t index);
  // Returns whether the device's actor is there.
  bool lives(std::size_t index) const;
  // Sets how many devices of a type are at work here, and returns the number.
  std::uint32_t scale_own(const std::string& type, std::uint32_t count);
  // Does the same for all nodes of the run; `name` is that of a type or its beginning.
  caf::result<std::uint32_t> scale(const std::string& name, std::uint32_t count);
  void stop_device(std::size_t index);
  void end_if_unwanted(std::size_t index);
  device_share share_of(const std::string& type) const;
  // Stops the workers. A device finishes its current work, and the result is discarded.
  void leave_run();
  // Ends after the jobs that the workers have. What generators were writing is lost.
  void retire();
  void end_if_retired();
  // Starts workers for the run again, over new connections.
  void rejoin_run(node_wiring run, telemetry_actor watching, generation_plan writing);
  void watch(caf::strong_actor_ptr one);
  // Adds `by` devices of a type to those that the pool draws for.
  void announce(const device_type_record& type, std::int32_t by);
  join_answer answer(const join_record& request);
  caf::result<learner_actor, generator_setup_record> set_up_generators(std::uint64_t count);
  // Counts a joined node among those that take part, after forgetting what an earlier process of
  // its name, or the same process over an earlier connection, had. Its devices are announced next.
  void take_in(const caf::actor& from, const std::string& name);
  // Returns the entry of a joined node, which is monitored from now on if it is new.
  joined_node& joined_node_of(const caf::actor& from);
  // Forgets a joined node and takes its devices off the pool's count.
  void lose(const caf::actor_addr& node);
  // Tells the joined nodes that the run has ended; the reply comes when all have left.
  caf::result<done_atom> end_run();
  void take_announcement(const caf::actor& from, const device_type_record& type, std::int32_t by);
  caf::result<done_atom> pass_on_lease(const std::string& name, std::uint64_t number,
                                       std::uint32_t max_ms);
  // Returns null if there is no device of this name at present, for example while it restarts.
  device_actor find_device(const std::string& name) const;
  void handle_down(const caf::down_msg& down);
  // Sees to a device and its workers after the end of an actor that may be one of them.
  void lose_of_device(std::size_t index, const caf::actor_addr& gone, const std::string& reason);
  void restart_later(const std::string& what, const std::string& reason, supervised kind,
                     std::size_t index, std::uint32_t restarts);
  void log(const std::string& line) const;
};

working_node_actor::behavior_type node_behavior(
    working_node_actor::stateful_pointer<node_state> self, node_options options, node_wiring wiring,
    std::shared_ptr<const task_table> tasks, telemetry_actor telemetry);

device_kinds kinds_of(const std::vector<planned_device>& devices);
device_kinds kinds_of(const std::set<std::string>& device_types);

// Returns why a node that asks to join must be refused; empty if it may join. `own`: the options of
// the run's first node; `of_joined`: what nodes that have joined have brought.
std::string find_join_problem(const join_record& request, const node_options& own,
                              const device_kinds& of_joined = {});

}  // namespace hone
