#include "launch/commands/cluster_check.hpp"

#include <algorithm>

namespace hone {
namespace {

// The first device of each kind, with the place that names it; empty: there is none.
struct device_kinds_found {
  std::string simulated;
  std::string real;

  void note(const std::vector<std::string>& devices, const std::string& place) {
    for (const std::string& one : devices) {
      std::string& kind = is_simulated(one) ? simulated : real;
      if (kind.empty()) kind = one + " of " + place;
    }
  }
};

// Returns settings, as a list of TOML, with which the head needs no GPU; empty if it needs none.
std::string settings_without_gpu(const configuration& c) {
  const auto names_gpu = [](const std::vector<std::string>& devices) {
    return std::any_of(devices.begin(), devices.end(),
                       [](const std::string& one) { return one.starts_with("cuda"); });
  };
  std::string settings;
  const auto add = [&](const std::string& one) {
    settings += (settings.empty() ? "'" : ", '") + one + "'";
  };
  if (names_gpu(c.node.devices)) add("node.devices=[]");
  if (c.policy.kind == "model" && names_gpu({c.policy.device})) add("policy.device=\"cpu\"");
  if (c.policy.kind == "model" && names_gpu(c.generation.devices)) add("generation.devices=[]");
  return settings;
}

}  // namespace

cluster_misfits find_misfits(const cluster_plan& plan, const configuration& c, bool has_gpu) {
  cluster_misfits misfits;
  device_kinds_found found;
  found.note(c.node.devices, "node.devices");
  for (const node_pool& pool : plan.pools) {
    if (pool.count > 0) found.note(pool.devices, "pool " + pool.name);
  }
  if (!found.simulated.empty() && !found.real.empty() && !c.node.options.mixes_simulation)
    misfits.problems.push_back(
        "the scores of " + found.simulated + " are made up and those of " + found.real +
        " are measured: the run takes one kind only (node.mix_simulated = true in its "
        "configuration allows both, to test a system)");
  for (const node_pool& pool : plan.pools) {
    if (c.policy.kind == "endpoint" && !pool.generators.empty())
      misfits.problems.push_back("pool " + pool.name +
                                 " has generators, but the run's policy is an endpoint, which only "
                                 "the head asks");
  }
  if (const std::string settings = settings_without_gpu(c); !has_gpu && !settings.empty())
    misfits.problems.push_back(
        "the head would start on this machine, which has no GPU, and its configuration names one: "
        "start the cluster on a machine with a GPU, or write set = [" +
        settings + "] in [head]");
  const std::string until = ", so the run waits for nodes that bring one";
  if (found.simulated.empty() && found.real.empty())
    misfits.notes.push_back("neither the head (node.devices) nor a pool has a device" + until);
  const bool has_compilers =
      c.node.options.compilers > 0 ||
      std::any_of(plan.pools.begin(), plan.pools.end(),
                  [](const node_pool& pool) { return pool.count > 0 && pool.compilers > 0; });
  if (!has_compilers)
    misfits.notes.push_back("neither the head (node.compilers) nor a pool has a compiler" + until);
  return misfits;
}

}  // namespace hone
