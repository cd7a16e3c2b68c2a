#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/cluster/cluster_file.hpp"
#include "launch/cluster/launcher.hpp"

namespace hone {

// A cluster is a head and pools of nodes, started by one command and changed by others. All that
// these need to know lies in the run's folder:
//   RUN/cluster/cluster.toml  a copy of the cluster file
//   RUN/cluster/authority/    the certificate authority and the identities (network/identity.hpp)
//   RUN/cluster/join          the address that nodes connect to
//   RUN/cluster/head.node     the head's process (cluster_head.hpp)
//   RUN/cluster/POOL/         the records of a pool (pool_folder.hpp)
//   RUN/cluster/POOL.scaled   the last `hone scale` of a pool: nodes, and the cluster file's number
//   RUN/cluster/lock          locked by the command that changes the cluster
//   RUN/logs/                 head.log, and POOL-N.log of each node
// RUN/cluster is readable by its owner only. Functions throw std::runtime_error with a message for
// users, also if another command changes the cluster at the same time, or if the head was started
// on another machine.

struct cluster_options {
  std::string program = "hone";                   // the head's, and that of local nodes
  bool resume = false;                            // continue the run that is in the folder
  std::chrono::milliseconds head_limit{600'000};  // for the head to listen
  std::chrono::milliseconds grace{30'000};        // of nodes, between SIGTERM and SIGKILL
};

struct node_pool_state {
  std::string name;
  launcher_kind launcher = launcher_kind::local;
  std::vector<launched_node> nodes;
  std::string problem;  // why the nodes cannot be listed; empty: they can
};

struct cluster_state {
  launched_node head;
  std::vector<node_pool_state> pools;
};

// Returns whether `hone up` has started the run in this folder.
bool is_cluster(const std::filesystem::path& run);

// Reads the plan of the cluster that was started in a run's folder, whether it is up or not. Its
// configuration is the one that the run keeps.
cluster_plan load_started(const std::filesystem::path& run);

// Throws if the file of the run's configuration is not there.
void require_configuration(const cluster_plan& plan);

// Returns true if the head and the nodes need identities: if the head can be reached from another
// machine, or a pool is not local.
bool needs_identities(const cluster_plan& plan);

// Returns, as text for users, what start_cluster() would do and run. Touches nothing.
std::string plan_cluster(const cluster_plan& plan, const cluster_options& options);

// Starts the head, then the pools, which have as many nodes as the last scale_pool() asked for if
// the cluster is resumed and its file has the same number as then. Throws if the cluster is up
// already, or if the head ends before it listens. If nodes cannot be started, the others are
// started, and the error names all of them.
void start_cluster(const cluster_plan& plan, const cluster_options& options);

// Sets the number of nodes of a pool. Nodes that have ended are started again.
void scale_pool(const std::filesystem::path& run, const std::string& pool, std::int64_t count,
                const cluster_options& options = {});

// Stops all nodes, then the head. Goes on if a pool cannot be stopped, and throws in the end; the
// pool is still remembered then.
void stop_cluster(const std::filesystem::path& run, const cluster_options& options = {});

cluster_state list_cluster(const std::filesystem::path& run);

// Returns the names of the pools, without asking their launchers anything.
std::vector<std::string> pool_names(const std::filesystem::path& run);

}  // namespace hone
