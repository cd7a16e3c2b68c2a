#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "actors/timeouts.hpp"
#include "messages/interfaces.hpp"

namespace hone {

// The latest status of all actors of a node, or of all nodes of a run.
struct node_snapshot {
  std::map<std::string, actor_status_record> actors;  // by name
  // Items processed per second between the last two reports, by the actor's name.
  std::map<std::string, double> rates;
  // Number of restarts, by the actor's name: how often another actor has taken the name.
  std::map<std::string, std::uint32_t> restarts;
  struct life {
    double busy_seconds = 0;
    double alive_seconds = 0;
  };
  // Sums over the earlier actors of the same name, by name.
  std::map<std::string, life> earlier;
  // When the actors of this node last reported, by name. A busy one reports when it is done.
  std::map<std::string, std::chrono::steady_clock::time_point> heard;
  std::map<std::string, std::uint64_t> last_report_ms;  // Unix time, by joined node
  run_status_record run;                                // empty on nodes without a pool
};

struct telemetry_options {
  std::string node;
  std::vector<device_type_record> device_types;
  std::filesystem::path trace;  // file for a Chrome trace; empty for none
  std::chrono::milliseconds interval = timeouts::telemetry_interval;
  std::function<void(const node_snapshot&)> show;  // called after each round, with all nodes
};

// Requests the counts and spans of the watched actors in rounds, keeps the latest, writes the
// trace and shows the snapshot. On a joined node it sends its reports to the node that was joined,
// which says how long the pause until the next round is. No actor waits for it.
struct telemetry_state {
  telemetry_state() = default;

  struct node_report {
    node_status_record status;
    std::uint64_t received_ms = 0;  // Unix time
  };

  telemetry_actor::stateful_pointer<telemetry_state> self = nullptr;
  telemetry_options options;
  pool_actor pool;    // null on nodes without a pool
  node_actor uplink;  // the node that was joined; null on the first node
  std::vector<caf::actor> watched;
  std::set<caf::actor_addr> asked;               // those of them that have not answered yet
  std::map<caf::actor_addr, std::string> names;  // of the watched actors that have reported
  std::set<std::string> stopped;                 // names of actors that did not fail, but ended
  node_snapshot snapshot;
  std::map<std::string, node_report> joined;  // by node
  std::chrono::milliseconds pause{};          // until the next round
  std::chrono::milliseconds longest_pause{};  // that the first node has allowed a joined one
  std::ofstream trace;
  std::map<std::string, int> trace_rows;

  void start_round();
  // Requests the status of every actor a last time. Delivers the promise when each request has a
  // reply or an error.
  void start_last_round(caf::typed_response_promise<done_atom> promise);
  void keep(const actor_status_record& status);
  void write_spans(const actor_status_record& status);
  node_status_record report() const;
  node_snapshot of_all_nodes() const;
};

telemetry_actor::behavior_type telemetry_behavior(
    telemetry_actor::stateful_pointer<telemetry_state> self, telemetry_options options,
    pool_actor pool, node_actor uplink);

}  // namespace hone
