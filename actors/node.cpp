#include "actors/node.hpp"

#include <algorithm>
#include <set>

#include "actors/benchmarker.hpp"
#include "actors/compiler.hpp"
#include "actors/device.hpp"
#include "actors/timeouts.hpp"
#include "actors/verifier.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

// What verifiers and benchmarkers have in common.
using leaving_actor = caf::typed_actor<caf::reacts_to<leave_atom>>;

// Returns the pause before the next restart, which doubles with every restart.
std::chrono::milliseconds restart_pause(std::uint32_t restarts) {
  return std::min(timeouts::longest_restart_pause,
                  timeouts::first_restart_pause * (1 << std::min(restarts, 16U)));
}

}  // namespace

device_kinds kinds_of(const std::vector<planned_device>& devices) {
  device_kinds kinds;
  for (const planned_device& device : devices) {
    const bool is_simulated = device.type->getKind() == schema::DeviceType::Kind::SIMULATED;
    (is_simulated ? kinds.has_simulated : kinds.has_real) = true;
  }
  return kinds;
}

std::string find_join_problem(const join_record& request, const node_options& own) {
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
  const device_kinds kinds = kinds_of(own.devices);
  if (request->getHasSimulatedDevices() && kinds.has_real)
    return "the node simulates devices, whose scores are made up; this run measures" + mix;
  if (request->getHasRealDevices() && kinds.has_simulated)
    return "the node has real devices; this run simulates, and its scores are made up" + mix;
  return "";
}

node_state::~node_state() {
  const auto end = [](const caf::actor_addr& one) {
    if (const auto alive = caf::actor_cast<caf::actor>(one))
      caf::anon_send_exit(alive, caf::exit_reason::user_shutdown);
  };
  for (const supervised_device& one : devices) end(one.device);
  for (const supervised_compiler& one : compilers) end(one.compiler);
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

void node_state::watch(caf::strong_actor_ptr one) {
  self->send(telemetry, watch_atom_v, std::move(one));
}

void node_state::start_device(std::size_t index) {
  supervised_device& one = devices[index];
  const std::string at = options.name + " " + one.plan.name;
  const auto device = self->spawn<caf::detached + caf::monitored>(device_behavior, "device " + at,
                                                                  tasks, one.plan.make);
  one.device = device.address();
  if (has_run) start_workers(index);
}

void node_state::start_workers(std::size_t index) {
  supervised_device& one = devices[index];
  const auto device = caf::actor_cast<device_actor>(one.device);
  if (!device) return;
  const std::string at = options.name + " " + one.plan.name;
  const auto verifier = self->spawn(verifier_behavior, "verifier " + at, one.plan, device, wiring);
  const auto benchmarker =
      self->spawn(benchmarker_behavior, options.name, one.plan, device, wiring);
  one.workers = {caf::actor_cast<caf::actor>(verifier), caf::actor_cast<caf::actor>(benchmarker)};
  watch(caf::actor_cast<caf::strong_actor_ptr>(device));
  for (const caf::actor& worker : one.workers)
    watch(caf::actor_cast<caf::strong_actor_ptr>(worker));
  if (!one.is_announced) announce(one.plan.type, 1);
  one.is_announced = true;
}

device_share node_state::share_of(const std::string& type) const {
  device_share own;
  for (const supervised_device& one : devices) {
    if (view(one.plan.type->getName()) != type) continue;
    ++own.there;
    own.at_work += one.is_wanted ? 1 : 0;
  }
  return own;
}

std::uint32_t node_state::scale_own(const std::string& type, std::uint32_t count) {
  device_share own = share_of(type);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    supervised_device& one = devices[i];
    if (view(one.plan.type->getName()) != type) continue;
    if (one.is_wanted && own.at_work > count) {
      stop_device(i);
      --own.at_work;
    } else if (!one.is_wanted && own.at_work < count) {
      one.is_wanted = true;
      if (caf::actor_cast<caf::actor>(one.device)) {
        if (has_run) start_workers(i);
      } else {
        start_device(i);
      }
      ++own.at_work;
    }
  }
  return own.at_work;
}

void node_state::stop_device(std::size_t index) {
  supervised_device& one = devices[index];
  one.is_wanted = false;
  for (const caf::actor& worker : one.workers) {
    self->monitor(worker);
    self->send(caf::actor_cast<leaving_actor>(worker), leave_atom_v);
  }
  if (one.is_announced) announce(one.plan.type, -1);
  one.is_announced = false;
  if (one.workers.empty()) end_if_unwanted(index);
}

void node_state::end_if_unwanted(std::size_t index) {
  const supervised_device& one = devices[index];
  if (one.is_wanted || !one.workers.empty()) return;
  if (const auto device = caf::actor_cast<caf::actor>(one.device))
    self->send_exit(device, caf::exit_reason::user_shutdown);
  log("the device " + one.plan.name + " has stopped work");
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
    return caf::make_error(caf::sec::runtime_error,
                           types.empty() ? "no node has devices of a type " + name
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

void node_state::leave_run() {
  has_run = false;
  for (supervised_device& one : devices) {
    for (const caf::actor& worker : one.workers)
      self->send_exit(worker, caf::exit_reason::user_shutdown);
    one.workers.clear();
    one.is_announced = false;
  }
  for (supervised_compiler& one : compilers) {
    if (const auto compiler = caf::actor_cast<caf::actor>(one.compiler)) {
      self->demonitor(one.compiler);
      self->send_exit(compiler, caf::exit_reason::user_shutdown);
    }
  }
}

void node_state::rejoin_run(node_wiring run, telemetry_actor watching) {
  wiring = std::move(run);
  telemetry = std::move(watching);
  has_run = true;
  if (wiring.uplink) self->send(wiring.uplink, join_atom_v, options.name);
  for (std::size_t i = 0; i < compilers.size(); ++i) start_compiler(i);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].is_wanted) start_workers(i);
  }
}

void node_state::start_compiler(std::size_t index) {
  const auto compiler = self->spawn<caf::detached + caf::monitored>(
      compiler_behavior, "compiler " + options.name + " " + std::to_string(index), tasks, wiring,
      options.compiler_credits);
  compilers[index].compiler = compiler.address();
  watch(caf::actor_cast<caf::strong_actor_ptr>(compiler));
}

device_actor node_state::find_device(const std::string& name) const {
  for (const supervised_device& one : devices) {
    if (one.plan.name == name) return caf::actor_cast<device_actor>(one.device);
  }
  return {};
}

void node_state::handle_down(const caf::down_msg& down) {
  if (const auto gone = joined.find(down.source); gone != joined.end()) {
    log((gone->second.name.empty() ? "a joined node" : gone->second.name) +
        " is gone; other workers take over its jobs");
    lose(down.source);
    return;
  }
  const std::string reason = self->system().render(down.reason);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (std::erase_if(devices[i].workers,
                      [&](const caf::actor& worker) { return worker.address() == down.source; }) > 0)
      end_if_unwanted(i);
    if (devices[i].device == down.source && devices[i].is_wanted)
      restart_later("the device " + devices[i].plan.name, reason, true, i, devices[i].restarts++);
  }
  for (std::size_t i = 0; i < compilers.size(); ++i) {
    if (compilers[i].compiler == down.source)
      restart_later("a compiler", reason, false, i, compilers[i].restarts++);
  }
}

void node_state::restart_later(const std::string& what, const std::string& reason, bool is_device,
                               std::size_t index, std::uint32_t restarts) {
  const std::chrono::milliseconds pause = restart_pause(restarts);
  log(what + " failed (" + reason + "); it is started again in " + std::to_string(pause.count()) +
      " ms");
  self->delayed_send(self, pause, revive_atom_v, is_device, static_cast<std::uint32_t>(index));
}

join_answer node_state::answer(const join_record& request) const {
  const std::string problem = find_join_problem(request, options);
  if (!problem.empty()) return caf::make_error(caf::sec::runtime_error, problem);
  log(std::string(view(request->getNode())) + " joins");
  std::vector<task_record> known;
  for (const auto& t : tasks->all()) known.push_back(to_record(*t));
  return {wiring.compiles, wiring.verifies, wiring.benchmarks, wiring.pool, known};
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
      std::count_if(devices.begin(), devices.end(), [&](const device_type_record& one) {
        return view(one->getName()) == type;
      }));
}

void node_state::take_in(const caf::actor& from, const std::string& name) {
  if (!from) return;
  // CAF does not always say that the earlier incarnation of a node is down.
  const auto earlier = std::find_if(joined.begin(), joined.end(), [&](const auto& entry) {
    return entry.second.name == name && entry.first != from.address();
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

working_node_actor::behavior_type node_behavior(
    working_node_actor::stateful_pointer<node_state> self, node_options options, node_wiring wiring,
    std::shared_ptr<const task_table> tasks, telemetry_actor telemetry) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.wiring = std::move(wiring);
  s.tasks = std::move(tasks);
  s.telemetry = std::move(telemetry);
  self->set_down_handler([self](const caf::down_msg& down) { self->state.handle_down(down); });
  for (const planned_device& device : s.options.devices) s.devices.push_back({.plan = device});
  s.compilers.resize(s.options.compilers);
  if (s.wiring.uplink) self->send(s.wiring.uplink, join_atom_v, s.options.name);
  for (std::size_t i = 0; i < s.compilers.size(); ++i) s.start_compiler(i);
  for (std::size_t i = 0; i < s.devices.size(); ++i) s.start_device(i);
  return {
      [self](join_atom, const join_record& request) { return self->state.answer(request); },
      [self](status_atom) { return self->delegate(self->state.telemetry, status_atom_v); },
      [self](lease_atom, const std::string& name, std::uint64_t number,
             std::uint32_t max_ms) -> caf::result<done_atom> {
        const device_actor device = self->state.find_device(name);
        if (!device)
          return caf::make_error(caf::sec::runtime_error,
                                 "there is no device " + name + " at present");
        return self->delegate(device, lease_atom_v, number, max_ms);
      },
      [self](const node_status_record& other) { self->send(self->state.telemetry, other); },
      [self](join_atom, const std::string& name) {
        self->state.take_in(caf::actor_cast<caf::actor>(self->current_sender()), name);
      },
      [self](device_atom, const device_type_record& type, std::int32_t by) {
        self->state.take_announcement(caf::actor_cast<caf::actor>(self->current_sender()), type,
                                      by);
      },
      [self](scale_atom, const std::string& type, std::uint32_t count) {
        return self->state.scale(type, count);
      },
      [self](stop_atom) -> caf::result<done_atom> {
        if (!self->state.wiring.uplink) return self->state.end_run();
        self->quit();
        return done_atom_v;
      },
      [self](revive_atom, bool is_device, std::uint32_t index) {
        if (is_device) {
          if (self->state.devices[index].is_wanted) self->state.start_device(index);
        } else if (self->state.has_run) {
          self->state.start_compiler(index);
        }
      },
      [self](leave_atom) { self->state.leave_run(); },
      [self](join_atom, node_wiring run, telemetry_actor watching) {
        self->state.rejoin_run(std::move(run), std::move(watching));
      },
  };
}

}  // namespace hone
