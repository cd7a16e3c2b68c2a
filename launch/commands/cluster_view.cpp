#include "launch/commands/cluster_view.hpp"

#include <iostream>
#include <string>

#include "launch/cluster/cluster.hpp"

namespace hone {
namespace {

void print_node(const launched_node& node) {
  std::cout << "  " << node.name << ": " << name_of(node.phase) << (node.where.empty() ? "" : ", ")
            << node.where << "\n";
  if (node.detail.empty() || node.phase == node_phase::running) return;
  std::string indented = "      ";
  for (const char c : node.detail)
    indented += c == '\n' ? std::string("\n      ") : std::string(1, c);
  std::cout << indented << "\n";
}

}  // namespace

int print_cluster(const std::filesystem::path& run) {
  const cluster_state state = list_cluster(run);
  bool is_well = state.head.phase == node_phase::running;
  print_node(state.head);
  for (const node_pool_state& pool : state.pools) {
    if (!pool.problem.empty()) std::cout << "  pool " << pool.name << ": " << pool.problem << "\n";
    is_well = is_well && pool.problem.empty();
    for (const launched_node& node : pool.nodes) {
      print_node(node);
      is_well = is_well && node.phase != node_phase::ended;
    }
  }
  return is_well ? 0 : 1;
}

}  // namespace hone
