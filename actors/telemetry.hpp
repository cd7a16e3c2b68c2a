#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "messages/interfaces.hpp"

namespace hone {

// What all actors of a node did, second by second. Nobody waits for it.
struct node_snapshot {
  std::map<std::string, actor_status_record> actors;  // by name, as last reported
  std::map<std::string, double> rates;  // processed a second, between the last two reports
  std::map<std::string, std::uint32_t> restarts;  // how often another actor has taken the name
  struct life {
    double busy_seconds = 0;
    double alive_seconds = 0;
  };
  std::map<std::string, life> earlier;  // of those that had the name before
  run_status_record run;                // empty on nodes without a pool
};

struct telemetry_options {
  std::string node;
  std::vector<device_type_record> device_types;
  std::filesystem::path trace;  // Chrome trace; empty: none
  std::chrono::milliseconds interval{1000};
  std::function<void(const node_snapshot&)> show;  // after each round
};

// Asks the actors that it watches for their counts and spans, keeps the latest, writes the trace,
// and shows what it has. Sends a joined node's report to the node that it joined.
struct telemetry_state {
  telemetry_state() = default;

  telemetry_actor::stateful_pointer<telemetry_state> self = nullptr;
  telemetry_options options;
  pool_actor pool;    // empty on nodes without one
  node_actor uplink;  // on joined nodes
  std::vector<caf::actor> watched;
  node_snapshot snapshot;
  std::map<std::string, std::pair<node_status_record, std::uint64_t>>
      others;  // joined nodes, and when they were heard (Unix ms)
  std::ofstream trace;
  std::map<std::string, int> trace_rows;

  void look();
  void look_a_last_time(caf::typed_response_promise<done_atom> promise);
  void keep(const actor_status_record& status);
  void write_spans(const actor_status_record& status);
  node_status_record report() const;
};

telemetry_actor::behavior_type telemetry(telemetry_actor::stateful_pointer<telemetry_state> self,
                                         telemetry_options options, pool_actor pool,
                                         node_actor uplink);

}  // namespace hone
