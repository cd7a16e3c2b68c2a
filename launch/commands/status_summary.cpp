#include "launch/commands/status_summary.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "results/printing.hpp"

namespace hone {
namespace {

struct totals {
  std::set<std::string> nodes{};
  std::size_t devices = 0, generators = 0, compilers = 0;
  std::uint64_t verified = 0, measured = 0, written = 0;
  double verified_per_second = 0, written_per_second = 0;

  void add(const std::string& node, const schema::ActorStatus::Reader& actor) {
    nodes.insert(node);
    const std::string_view room = view(actor.getRoom());
    if (room == "verifier") {
      ++devices;
      verified += actor.getProcessed();
      verified_per_second += actor.getRate();
    } else if (room == "benchmarker") {
      measured += actor.getProcessed();
    } else if (room == "generator") {
      ++generators;
      written += actor.getProcessed();
      written_per_second += actor.getRate();
    } else if (room == "compiler") {
      ++compilers;
    }
  }
};

constexpr std::size_t name_width = 34;

using cells = std::vector<std::string>;

void print_line(const std::string& name, const cells& values) {
  std::cout << pad(name, name_width);
  for (const std::string& value : values) std::cout << pad(value, 12, true);
  std::cout << "\n";
}

cells judging_of(const totals& of) {
  return {std::to_string(of.nodes.size()), std::to_string(of.devices), std::to_string(of.verified),
          fixed(of.verified_per_second, 1), std::to_string(of.measured)};
}

cells work_of(const totals& of) {
  cells all = judging_of(of);
  for (const std::string& value : {std::to_string(of.generators), std::to_string(of.written),
                                   fixed(of.written_per_second, 1), std::to_string(of.compilers)})
    all.push_back(value);
  return all;
}

const cells judging = {"nodes", "devices", "verified", "per second", "measured"};
const cells work = {"nodes",      "devices", "verified",   "per second", "measured",
                    "generators", "written", "per second", "compilers"};

std::string pool_of(const std::string& node, const std::vector<std::string>& pools) {
  const std::size_t dash = node.rfind('-');
  const bool has_number = dash != std::string::npos && dash + 1 < node.size() &&
                          node.find_first_not_of("0123456789", dash + 1) == std::string::npos;
  const std::string prefix = has_number ? node.substr(0, dash) : "";
  const bool is_known = std::find(pools.begin(), pools.end(), prefix) != pools.end();
  return is_known ? prefix : "the other nodes";
}

// Calls `use(node, actor)` for each actor of the nodes.
template <class Use>
void each_actor(const std::vector<node_status_record>& nodes, const Use& use) {
  for (const node_status_record& node : nodes) {
    for (const auto actor : node->getActors()) use(std::string(view(node->getNode())), actor);
  }
}

}  // namespace

void print_summary(const std::vector<node_status_record>& nodes,
                   const std::vector<std::string>& pools) {
  std::map<std::string, totals> by_type;
  std::map<std::string, totals> by_pool;
  each_actor(nodes, [&](const std::string& node, const schema::ActorStatus::Reader& actor) {
    if (actor.getDeviceType().size() > 0)
      by_type[std::string(view(actor.getDeviceType()))].add(node, actor);
    if (!pools.empty()) by_pool[pool_of(node, pools)].add(node, actor);
  });
  print_line("device type", judging);
  for (const auto& [type, of] : by_type) print_line("  " + type, judging_of(of));
  if (pools.empty()) return;
  print_line("pool", work);
  for (const auto& [pool, of] : by_pool) print_line("  " + pool, work_of(of));
}

void print_nodes(const std::vector<node_status_record>& nodes) {
  std::map<std::string, totals> by_node;
  each_actor(nodes, [&](const std::string& node, const schema::ActorStatus::Reader& actor) {
    by_node[node].add(node, actor);
  });
  print_line("node", work);
  for (const auto& [node, of] : by_node) print_line("  " + node, work_of(of));
}

}  // namespace hone
