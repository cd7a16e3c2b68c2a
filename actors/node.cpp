#include "actors/node.hpp"

#include <algorithm>

#include "actors/benchmarker.hpp"
#include "actors/compiler.hpp"
#include "actors/device.hpp"
#include "actors/error_text.hpp"
#include "actors/timeouts.hpp"
#include "actors/verifier.hpp"

namespace hone {
namespace {

// What verifiers and benchmarkers have in common.
using leaving_actor = caf::typed_actor<caf::reacts_to<leave_atom>>;

// Returns the pause before the next restart, which doubles with every restart.
std::chrono::milliseconds restart_pause(std::uint32_t restarts) {
  return std::min(timeouts::max_restart_pause,
                  timeouts::first_restart_pause * (1 << std::min(restarts, 16U)));
}

}  // namespace

node_state::~node_state() {
  const auto end = [](const caf::actor_addr& one) {
    if (const auto alive = caf::actor_cast<caf::actor>(one))
      caf::anon_send_exit(alive, caf::exit_reason::user_shutdown);
  };
  for (const supervised_device& one : devices) end(one.device.address());
  for (const supervised_compiler& one : compilers) end(one.compiler);
  for (const supervised_generator& one : generators) end(one.generator);
  if (fetcher) end(fetcher.address());
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
  one.device = device;
  if (has_run) start_workers(index);
}

void node_state::start_workers(std::size_t index) {
  supervised_device& one = devices[index];
  const device_actor device = one.device;
  if (!device) return;
  const std::string at = options.name + " " + one.plan.name;
  const auto benchmarker =
      self->spawn(benchmarker_behavior, options.name, one.plan, device, wiring);
  const auto verifier =
      self->spawn(verifier_behavior, "verifier " + at, one.plan, device, benchmarker, wiring);
  watch(caf::actor_cast<caf::strong_actor_ptr>(device));
  for (const auto& worker :
       {caf::actor_cast<caf::actor>(verifier), caf::actor_cast<caf::actor>(benchmarker)}) {
    one.workers.push_back(worker);
    self->monitor(worker);
    watch(caf::actor_cast<caf::strong_actor_ptr>(worker));
  }
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
  if (is_retiring) return own.at_work;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    supervised_device& one = devices[i];
    if (view(one.plan.type->getName()) != type) continue;
    if (one.is_wanted && own.at_work > count) {
      stop_device(i);
      --own.at_work;
    } else if (!one.is_wanted && own.at_work < count) {
      one.is_wanted = true;
      if (lives(i)) {
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
  for (const caf::actor& worker : one.workers)
    self->send(caf::actor_cast<leaving_actor>(worker), leave_atom_v);
  if (one.is_announced) announce(one.plan.type, -1);
  one.is_announced = false;
  if (one.workers.empty()) end_if_unwanted(index);
}

void node_state::end_if_unwanted(std::size_t index) {
  const supervised_device& one = devices[index];
  if (one.is_wanted || !one.workers.empty() || !one.device) return;
  self->send_exit(one.device, caf::exit_reason::user_shutdown);
  log("the device " + one.plan.name + " has stopped work");
}

bool node_state::lives(std::size_t index) const { return static_cast<bool>(devices[index].device); }

void node_state::revive(supervised kind, std::size_t index) {
  if (is_retiring) return;
  // Something else may have started it meanwhile.
  switch (kind) {
    case supervised::device:
      if (!lives(index) && devices[index].is_wanted) start_device(index);
      return;
    case supervised::workers:
      if (lives(index) && devices[index].is_wanted && devices[index].workers.empty() && has_run)
        start_workers(index);
      return;
    case supervised::compiler:
      if (!compilers[index].compiler && has_run) start_compiler(index);
      return;
    case supervised::generator:
      if (!generators[index].generator && has_run) start_generator(index);
      return;
    case supervised::fetcher:
      if (fetcher) return;
      stop_generators();
      if (has_run) start_generators();
      return;
  }
}

void node_state::leave_run() {
  has_run = false;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (const caf::actor& worker : devices[i].workers) {
      self->demonitor(worker);
      self->send_exit(worker, caf::exit_reason::user_shutdown);
    }
    devices[i].workers.clear();
    devices[i].is_announced = false;
    end_if_unwanted(i);
  }
  for (supervised_compiler& one : compilers) {
    if (const auto compiler = caf::actor_cast<caf::actor>(one.compiler)) {
      self->demonitor(one.compiler);
      self->send_exit(compiler, caf::exit_reason::user_shutdown);
    }
    one.compiler = {};
  }
  stop_generators();
}

void node_state::retire() {
  is_retiring = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].is_wanted) stop_device(i);
  }
  for (const supervised_compiler& one : compilers) {
    if (const auto compiler = caf::actor_cast<compiler_actor>(one.compiler))
      self->send(compiler, leave_atom_v);
  }
  stop_generators();
  end_if_retired();
}

void node_state::end_if_retired() {
  const bool has_workers =
      std::any_of(devices.begin(), devices.end(),
                  [](const supervised_device& one) { return !one.workers.empty(); }) ||
      std::any_of(compilers.begin(), compilers.end(),
                  [](const supervised_compiler& one) { return static_cast<bool>(one.compiler); });
  if (!has_workers) self->quit();
}

void node_state::rejoin_run(node_wiring run, telemetry_actor watching, generation_plan writing) {
  wiring = std::move(run);
  telemetry = std::move(watching);
  generation = std::move(writing);
  has_run = true;
  if (wiring.uplink) self->send(wiring.uplink, join_atom_v, options.name);
  for (std::size_t i = 0; i < compilers.size(); ++i) start_compiler(i);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].is_wanted) start_workers(i);
  }
  start_generators();
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
    if (one.plan.name == name) return one.device;
  }
  return {};
}

caf::result<done_atom> node_state::pass_on_lease(const std::string& name, std::uint64_t number,
                                                 std::uint32_t max_ms) {
  const device_actor device = find_device(name);
  if (!device)
    return caf::make_error(caf::sec::runtime_error, "there is no device " + name + " at present");
  return self->delegate(device, lease_atom_v, number, max_ms);
}

void node_state::handle_down(const caf::down_msg& down) {
  if (const auto gone = joined.find(down.source); gone != joined.end()) {
    if (goodbyes.empty())
      log((gone->second.name.empty() ? "a joined node" : gone->second.name) +
          (down.reason ? " is gone; other workers take over its jobs" : " has left the run"));
    lose(down.source);
    return;
  }
  const std::string reason = text_of(self->system(), down.reason);
  for (std::size_t i = 0; i < devices.size(); ++i) lose_of_device(i, down.source, reason);
  for (std::size_t i = 0; i < compilers.size(); ++i) {
    if (compilers[i].compiler != down.source) continue;
    compilers[i].compiler = {};
    if (!is_retiring)
      restart_later("a compiler", reason, supervised::compiler, i, compilers[i].restarts++);
  }
  if (fetcher && fetcher.address() == down.source) {
    fetcher = fetcher_actor();
    restart_later("the fetcher", reason, supervised::fetcher, 0, fetcher_restarts++);
  }
  for (std::size_t i = 0; i < generators.size(); ++i) {
    if (generators[i].generator != down.source) continue;
    generators[i].generator = {};
    restart_later("the generator on " + generation.generators[i].device, reason,
                  supervised::generator, i, generators[i].restarts++);
  }
  if (is_retiring) end_if_retired();
}

void node_state::lose_of_device(std::size_t index, const caf::actor_addr& gone,
                                const std::string& reason) {
  supervised_device& one = devices[index];
  const bool was_worker = std::erase_if(one.workers, [&](const caf::actor& worker) {
                            return worker.address() == gone;
                          }) > 0;
  if (was_worker) end_if_unwanted(index);
  if (one.device.address() == gone) {
    one.device = device_actor();
    if (one.is_wanted)
      restart_later("the device " + one.plan.name, reason, supervised::device, index,
                    one.restarts++);
  } else if (was_worker && one.is_wanted && one.workers.empty() && has_run && lives(index)) {
    // They ended without their device, or its end is heard of next.
    restart_later("the workers of " + one.plan.name, reason, supervised::workers, index,
                  one.worker_restarts++);
  }
}

void node_state::restart_later(const std::string& what, const std::string& reason, supervised kind,
                               std::size_t index, std::uint32_t restarts) {
  const std::chrono::milliseconds pause = restart_pause(restarts);
  log(what + " failed (" + reason + "); it is started again in " + std::to_string(pause.count()) +
      " ms");
  self->delayed_send(self, pause, revive_atom_v, static_cast<std::uint8_t>(kind),
                     static_cast<std::uint32_t>(index));
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
  s.generation = s.options.generation;
  s.compilers.resize(s.options.compilers);
  if (s.wiring.uplink) self->send(s.wiring.uplink, join_atom_v, s.options.name);
  for (std::size_t i = 0; i < s.compilers.size(); ++i) s.start_compiler(i);
  for (std::size_t i = 0; i < s.devices.size(); ++i) s.start_device(i);
  s.start_generators();
  return {
      [self](join_atom, const join_record& request) { return self->state.answer(request); },
      [self](generate_atom, std::uint64_t count) { return self->state.set_up_generators(count); },
      [self](status_atom) { return self->delegate(self->state.telemetry, status_atom_v); },
      [self](lease_atom, const std::string& name, std::uint64_t number, std::uint32_t max_ms) {
        return self->state.pass_on_lease(name, number, max_ms);
      },
      [self](const node_status_record& other) {
        self->send(self->state.telemetry, other);
        return static_cast<std::uint32_t>(
            timeouts::report_pause(self->state.joined.size()).count());
      },
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
      [self](revive_atom, std::uint8_t kind, std::uint32_t index) {
        self->state.revive(static_cast<node_state::supervised>(kind), index);
      },
      [self](finish_atom) { self->state.retire(); },
      [self](generate_atom, const learner_actor& learner) {
        self->state.generation.learner = learner;
      },
      [self](leave_atom) { self->state.leave_run(); },
      [self](join_atom, node_wiring run, telemetry_actor watching, generation_plan writing) {
        self->state.rejoin_run(std::move(run), std::move(watching), std::move(writing));
      },
  };
}

}  // namespace hone
