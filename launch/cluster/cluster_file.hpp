#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// What starts the nodes of a pool.
enum class launcher_kind {
  local,       // processes on this machine
  ssh,         // one ssh client per node
  slurm,       // one batch job per node
  kubernetes,  // one StatefulSet per pool
};
std::string_view name_of(launcher_kind kind);

// Nodes that are started alike. NAME-0, NAME-1, ... are their names.
struct node_pool {
  std::string name;
  launcher_kind launcher = launcher_kind::local;
  std::int64_t count = 1;
  std::vector<std::string> devices;     // as `hone node --devices`; none: the nodes do not judge
  std::vector<std::string> generators;  // as `hone node --generators`; none: the nodes do not write
  std::int64_t compilers = 1;
  std::string hone;                  // the program on the node; empty: `hone`, or for local nodes
                                     // the program that launches
  std::vector<std::string> options;  // further options of `hone node`

  // ssh: node N runs on the host N modulo the number of hosts.
  std::vector<std::string> hosts;
  std::int64_t per_host = 1;  // most nodes on one host

  std::string setup;  // ssh and Slurm: a line of shell that runs before hone; may be empty

  struct slurm_keys {
    std::string partition, account, gres, time;  // empty: Slurm's default
    std::vector<std::string> extra;              // lines that begin with #SBATCH
    bool operator==(const slurm_keys&) const = default;
  } slurm;
  struct kubernetes_keys {
    std::string image;
    std::string name_space;                       // empty: kubectl's default
    std::map<std::string, std::string> selector;  // labels of the machines that may be used
    std::int64_t gpus = 0;                        // per node
    std::string service_account;                  // empty: the namespace's default
    bool operator==(const kubernetes_keys&) const = default;
  } kubernetes;

  bool operator==(const node_pool&) const = default;

  // Returns the largest number of nodes that the pool can have.
  std::int64_t max_nodes() const;
};

// What `hone up` starts: the contents of a cluster file.
struct cluster_plan {
  std::string text;                 // the file's
  std::filesystem::path config;     // absolute; relative to the file in the file
  std::filesystem::path directory;  // absolute; relative to the current folder in the file
  struct {
    std::string listen;            // HOST:PORT that the head binds
    std::string advertise;         // HOST:PORT that nodes connect to; empty: what the head binds
    std::vector<std::string> set;  // "section.key=value"
  } head;
  std::vector<node_pool> pools;

  // Throws std::runtime_error, which names the pools that there are, if there is none of this name.
  const node_pool& pool(const std::string& name) const;
};

// Reads a cluster file. Throws format_error that names the file, the line, the key, what was found
// and what was expected. A key that the pool's launcher does not know is refused.
cluster_plan load_cluster(const std::filesystem::path& file);

}  // namespace hone
