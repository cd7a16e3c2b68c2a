#include "actors/node.hpp"

#include <algorithm>

#include "actors/benchmarker.hpp"
#include "actors/compiler.hpp"
#include "actors/device.hpp"
#include "actors/verifier.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

// 0.5 s, doubled with every restart, at most 30 s.
std::chrono::milliseconds back_off(std::uint32_t restarts) {
  return std::chrono::milliseconds(std::min<std::int64_t>(30000, 500LL << std::min(restarts, 6U)));
}

}  // namespace

std::string find_join_problem(const join_record& request) {
  if (request->getSchemaVersion() != schema_version) {
    return "the node speaks schema version " + std::to_string(request->getSchemaVersion()) +
           ", this run version " + std::to_string(schema_version);
  }
  if (request->getJudgeVersion() != judge_version) {
    return "the node judges by version " + std::to_string(request->getJudgeVersion()) +
           ", this run by version " + std::to_string(judge_version) +
           ": their scores would not be comparable";
  }
  return "";
}

void node_state::log(const std::string& line) const {
  if (options.log) options.log(line);
}

void node_state::announce(const device_type_record& type, std::int32_t by) {
  if (wiring.uplink) {
    self->send(wiring.uplink, device_atom_v, type, by);
  } else {
    self->send(wiring.pool, device_atom_v, type, by);
  }
}

void node_state::start_device(std::size_t index) {
  kept_device& kept = devices[index];
  const planned_device& what = kept.what;
  const std::string type(view(what.type->getName()));
  const std::string at = options.name + " " + what.name;
  const auto device =
      self->spawn<caf::detached + caf::monitored>(device_shell, "device " + at, tasks, what.make);
  const auto verifies = self->spawn(verifier, "verifier " + at, type, device, wiring.verifies,
                                    wiring.benchmarks, wiring.pool, what.credits, what.job_limit);
  const auto measures = self->spawn(benchmarker, "benchmarker " + at, type, what.name, device,
                                    wiring.benchmarks, wiring.pool, what.credits, what.job_limit);
  kept.device = device.address();
  self->send(telemetry, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(device));
  self->send(telemetry, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(verifies));
  self->send(telemetry, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(measures));
  if (!kept.announced) announce(what.type, 1);
  kept.announced = true;
}

void node_state::start_compiler(std::size_t index) {
  const auto worker = self->spawn<caf::detached + caf::monitored>(
      compiler, "compiler " + options.name + " " + std::to_string(index), tasks, wiring.compiles,
      wiring.verifies, wiring.pool, options.compiler_credits);
  compilers[index].worker = worker.address();
  self->send(telemetry, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(worker));
}

device_actor node_state::find_device(const std::string& name) const {
  for (const kept_device& kept : devices) {
    if (kept.what.name == name) return caf::actor_cast<device_actor>(kept.device);
  }
  return {};
}

void node_state::lost(const caf::down_msg& down) {
  if (const auto gone = joined.find(down.source); gone != joined.end()) {
    for (const device_type_record& type : gone->second)
      self->send(wiring.pool, device_atom_v, type, -1);
    log("a joined node is gone; its jobs are done elsewhere");
    joined.erase(gone);
    return;
  }
  const std::string reason = self->system().render(down.reason);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].device != down.source) continue;
    const auto pause = back_off(devices[i].restarts++);
    log("the device " + devices[i].what.name + " failed (" + reason + "); it is started again in " +
        std::to_string(pause.count()) + " ms");
    self->delayed_send(self, pause, revive_atom_v, true, static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < compilers.size(); ++i) {
    if (compilers[i].worker != down.source) continue;
    const auto pause = back_off(compilers[i].restarts++);
    log("a compiler failed (" + reason + "); it is started again in " +
        std::to_string(pause.count()) + " ms");
    self->delayed_send(self, pause, revive_atom_v, false, static_cast<std::uint32_t>(i));
  }
}

void node_state::hear_of_device(const caf::actor& from, const device_type_record& type,
                                std::int32_t by) {
  if (!from) return;
  const auto [entry, fresh] = joined.try_emplace(from.address());
  if (fresh) self->monitor(from);
  if (by > 0) entry->second.push_back(type);
  self->send(wiring.pool, device_atom_v, type, by);
}

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, node_options options,
                               node_wiring wiring, std::shared_ptr<const task_table> tasks,
                               telemetry_actor telemetry) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.wiring = std::move(wiring);
  s.tasks = std::move(tasks);
  s.telemetry = std::move(telemetry);
  self->set_down_handler([self](const caf::down_msg& down) { self->state.lost(down); });
  for (const planned_device& device : s.options.devices) s.devices.push_back({device, {}, 0, false});
  s.compilers.resize(s.options.compilers);
  for (std::size_t i = 0; i < s.compilers.size(); ++i) s.start_compiler(i);
  for (std::size_t i = 0; i < s.devices.size(); ++i) s.start_device(i);
  return {
      [self](join_atom, const join_record& request)
          -> caf::result<compile_queue, verify_queue, benchmark_queue, pool_actor,
                         std::vector<task_record>> {
        const std::string problem = find_join_problem(request);
        if (!problem.empty()) return caf::make_error(caf::sec::runtime_error, problem);
        self->state.log("node " + std::string(view(request->getNode())) + " joins");
        std::vector<task_record> known;
        for (const auto& t : self->state.tasks->all()) known.push_back(to_record(*t));
        const node_wiring& w = self->state.wiring;
        return {w.compiles, w.verifies, w.benchmarks, w.pool, known};
      },
      [self](status_atom) { return self->delegate(self->state.telemetry, status_atom_v); },
      [self](lease_atom, const std::string& name, std::uint64_t turn,
             std::uint32_t most_ms) -> caf::result<done_atom> {
        const device_actor device = self->state.find_device(name);
        if (!device)
          return caf::make_error(caf::sec::runtime_error,
                                 "there is no device " + name + " at present");
        return self->delegate(device, lease_atom_v, turn, most_ms);
      },
      [self](const node_status_record& other) { self->send(self->state.telemetry, other); },
      [self](device_atom, const device_type_record& type, std::int32_t by) {
        self->state.hear_of_device(caf::actor_cast<caf::actor>(self->current_sender()), type, by);
      },
      [self](revive_atom, bool is_device, std::uint32_t index) {
        if (is_device) {
          self->state.start_device(index);
        } else {
          self->state.start_compiler(index);
        }
      },
  };
}

}  // namespace hone
