#include <algorithm>
#include <set>

#include "actors/node.hpp"
#include "messages/names.hpp"
#include "messages/versions.hpp"

// The first node's view of the nodes that have joined it.
namespace hone {

device_kinds kinds_of(const std::vector<planned_device>& devices) {
  device_kinds kinds;
  for (const planned_device& device : devices) {
    const bool is_simulated = device.type->getKind() == schema::DeviceType::Kind::SIMULATED;
    (is_simulated ? kinds.has_simulated : kinds.has_real) = true;
  }
  return kinds;
}

device_kinds kinds_of(const std::set<std::string>& device_types) {
  device_kinds kinds;
  for (const std::string& type : device_types)
    (device_kind_of(type) == "simulated" ? kinds.has_simulated : kinds.has_real) = true;
  return kinds;
}

std::string find_join_problem(const join_record& request, const node_options& own,
                              const device_kinds& of_joined) {
  if (request->getSchemaVersion() != schema_version) {
    return "the node uses schema version " + std::to_string(request->getSchemaVersion()) +
           ", this run uses version " + std::to_string(schema_version);
  }
  if (request->getJudgeVersion() != judge_version) {
    return "the node judges by version " + std::to_string(request->getJudgeVersion()) +
           ", this run by version " + std::to_string(judge_version) +
           ": their scores would not be comparable";
  }
  if (own.needs_baselines && request->getHasRealDevices() && !request->getTimesBaselines())
    return "the node times no baselines (--no-baselines), and this run's reward depends on them";
  if (own.mixes_simulation) return "";
  const std::string mix = " (node.mix_simulated = true in the run's configuration allows it)";
  const device_kinds kinds = kinds_of(own.devices).with(own.kinds_of_scores).with(of_joined);
  if (request->getHasSimulatedDevices() && kinds.has_real)
    return "the node simulates devices, whose scores are made up; this run measures" + mix;
  if (request->getHasRealDevices() && kinds.has_simulated)
    return "the node has real devices; this run simulates, and its scores are made up" + mix;
  if (request->getHasRealDevices() && request->getHasSimulatedDevices())
    return "the node has real devices and simulated ones, whose scores are made up" + mix;
  return "";
}

join_answer node_state::answer(const join_record& request) {
  const std::string problem = find_join_problem(request, options, kinds_of_joined);
  if (!problem.empty()) return caf::make_error(caf::sec::runtime_error, problem);
  kinds_of_joined =
      kinds_of_joined.with({request->getHasRealDevices(), request->getHasSimulatedDevices()});
  log(std::string(view(request->getNode())) + " joins");
  std::vector<task_record> known;
  for (const auto& t : tasks->all()) known.push_back(to_record_without_data(*t));
  return {wiring.compiles, wiring.verifies, wiring.benchmarks,
          wiring.pool,     known,           options.configuration};
}

caf::result<learner_actor, generator_setup_record> node_state::set_up_generators(
    std::uint64_t count) {
  if (!generation.learner || !options.setup)
    return caf::make_error(caf::sec::runtime_error, "this run has no place for further generators");
  record_builder<schema::GeneratorSetup> setup(*options.setup);
  setup->setFirstReplica(next_replica);
  next_replica += count;
  return {generation.learner, setup.finish()};
}

node_state::joined_node& node_state::joined_node_of(const caf::actor& from) {
  const auto [entry, is_new] = joined.try_emplace(from.address());
  if (is_new) {
    entry->second.handle = from;
    self->monitor(from);
  }
  return entry->second;
}

std::uint32_t node_state::joined_node::at_work(const std::string& type) const {
  return static_cast<std::uint32_t>(
      std::count_if(devices.begin(), devices.end(),
                    [&](const device_type_record& one) { return view(one->getName()) == type; }));
}

void node_state::take_in(const caf::actor& from, const std::string& name) {
  if (!from) return;
  // CAF does not always say that an earlier connection is down, of another process or of this one.
  const auto earlier = std::find_if(joined.begin(), joined.end(), [&](const auto& entry) {
    return entry.second.name == name || entry.first == from.address();
  });
  if (earlier != joined.end()) lose(caf::actor_addr(earlier->first));
  joined_node_of(from).name = name;
}

void node_state::take_announcement(const caf::actor& from, const device_type_record& type,
                                   std::int32_t by) {
  if (!from) return;
  joined_node& node = joined_node_of(from);
  std::vector<device_type_record>& all = node.devices;
  if (by > 0) {
    all.push_back(type);
    const std::string name(view(type->getName()));
    node.there[name] = std::max(node.there[name], node.at_work(name));
    if (share_of(name).there == 0 && types_of_joined.insert(name).second && options.on_new_type)
      options.on_new_type(name);
  } else {
    const auto one = std::find_if(all.begin(), all.end(), [&](const device_type_record& other) {
      return view(other->getName()) == view(type->getName());
    });
    if (one == all.end()) return;
    all.erase(one);
  }
  self->send(wiring.pool, device_atom_v, type, by);
}

void node_state::lose(const caf::actor_addr& node) {
  const auto gone = joined.find(node);
  for (const device_type_record& type : gone->second.devices)
    self->send(wiring.pool, device_atom_v, type, -1);
  self->send(wiring.pool, leave_atom_v, node.node());
  self->send(telemetry, leave_atom_v, gone->second.name);
  self->demonitor(node);
  joined.erase(gone);
  if (!joined.empty()) return;
  for (auto& goodbye : goodbyes) goodbye.deliver(done_atom_v);
  goodbyes.clear();
}

caf::result<done_atom> node_state::end_run() {
  auto goodbye = self->make_response_promise<done_atom>();
  for (const auto& [address, node] : joined)
    caf::anon_send(caf::actor_cast<node_actor>(node.handle), stop_atom_v);
  if (joined.empty()) {
    goodbye.deliver(done_atom_v);
  } else {
    goodbyes.push_back(goodbye);
  }
  return goodbye;
}

caf::result<std::uint32_t> node_state::scale(const std::string& name, std::uint32_t count) {
  std::set<std::string> types;
  const auto note = [&](std::string_view type) {
    if (is_type_named(type, name)) types.emplace(type);
  };
  for (const supervised_device& one : devices) note(view(one.plan.type->getName()));
  for (const auto& [address, node] : joined) {
    for (const auto& [type, there] : node.there) note(type);
  }
  if (types.size() != 1)
    return caf::make_error(
        caf::sec::runtime_error,
        types.empty() ? "there is no pool " + name + ", and no node has devices of such a type"
                      : "more than one type of device begins with " + name);
  const std::string& type = *types.begin();
  if (wiring.uplink) return scale_own(type, count);
  std::vector<device_share> shares = {share_of(type)};
  for (const auto& [address, node] : joined) {
    const auto there = node.there.find(type);
    shares.push_back({there == node.there.end() ? 0 : there->second, node.at_work(type)});
  }
  const std::vector<std::uint32_t> counts = share_devices(shares, count);
  std::uint32_t all = scale_own(type, counts[0]);
  std::size_t i = 1;
  for (const auto& [address, node] : joined) {
    all += counts[i];
    caf::anon_send(caf::actor_cast<node_actor>(node.handle), scale_atom_v, type, counts[i++]);
  }
  return all;
}

}  // namespace hone
