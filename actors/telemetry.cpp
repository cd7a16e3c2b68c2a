#include "actors/telemetry.hpp"

#include <unistd.h>

#include "messages/clock.hpp"
#include "messages/versions.hpp"
#include "process/cut_line.hpp"

namespace hone {
void telemetry_state::start_round() {
  for (const caf::actor& one : watched) {
    // One that is busy is not asked again before it has answered.
    if (!asked.insert(one.address()).second) continue;
    self->request(one, timeouts::status_request, status_atom_v)
        .then(
            [this, address = one.address()](const actor_status_record& status) {
              asked.erase(address);
              names[address] = std::string(view(status->getName()));
              keep(status);
            },
            [this, address = one.address()](const caf::error&) { asked.erase(address); });
  }
  if (pool) {
    self->request(pool, timeouts::status_request, status_atom_v, watch_atom_v)
        .then([this](const run_status_record& run) { snapshot.run = run; },
              [](const caf::error&) {});
  }
  if (uplink) {
    self->request(uplink, timeouts::status_request, report())
        .then(
            [this](std::uint32_t pause_ms) {
              pause = std::max(options.interval, std::chrono::milliseconds(pause_ms));
            },
            [](const caf::error&) {});
  }
  longest_pause = std::max(longest_pause, timeouts::report_pause(joined.size()));
  const std::chrono::milliseconds max_age = timeouts::report_age_in_pauses * longest_pause;
  std::erase_if(joined, [oldest_ms = unix_ms() - static_cast<std::uint64_t>(max_age.count())](
                            const auto& entry) { return entry.second.received_ms < oldest_ms; });
  if (options.show) options.show(of_all_nodes());
  self->delayed_send(self, pause, tick_atom_v);
}

void telemetry_state::start_last_round(caf::typed_response_promise<done_atom> promise) {
  const auto left = std::make_shared<std::size_t>(watched.size() + 1);
  auto one_less = [this, left, promise]() mutable {
    if (--*left > 0) return;
    if (options.show) options.show(of_all_nodes());
    promise.deliver(done_atom_v);
  };
  for (const caf::actor& one : watched) {
    self->request(one, timeouts::last_status_request, status_atom_v)
        .then(
            [this, one_less](const actor_status_record& status) mutable {
              keep(status);
              one_less();
            },
            [one_less](const caf::error&) mutable { one_less(); });
  }
  one_less();
}

void telemetry_state::keep(const actor_status_record& status) {
  const std::string name(view(status->getName()));
  if (const auto last = snapshot.actors.find(name); last != snapshot.actors.end()) {
    if (status->getStartedUs() != last->second->getStartedUs()) {
      if (stopped.erase(name) == 0) ++snapshot.restarts[name];
      snapshot.earlier[name].busy_seconds += last->second->getBusySeconds();
      snapshot.earlier[name].alive_seconds += last->second->getAliveSeconds();
    }
    const double seconds = status->getAliveSeconds() - last->second->getAliveSeconds();
    const auto done = static_cast<double>(status->getProcessed()) -
                      static_cast<double>(last->second->getProcessed());
    snapshot.rates[name] = seconds > 0 && done >= 0 ? done / seconds : 0;
  }
  snapshot.actors[name] = status;
  snapshot.heard[name] = std::chrono::steady_clock::now();
  if (trace.is_open()) write_spans(status);
}

// Writes Chrome's trace event format: complete events, one row per actor and process, so that a
// resumed run has separate rows. The format allows the closing bracket to be missing.
void telemetry_state::write_spans(const actor_status_record& status) {
  const std::string name(view(status->getName()));
  const auto [row, is_new] = trace_rows.emplace(name, static_cast<int>(trace_rows.size()) + 1);
  if (is_new)
    trace << R"({"name":"thread_name","ph":"M","pid":)" << getpid() << R"(,"tid":)" << row->second
          << R"(,"args":{"name":")" << name << "\"}},\n";
  for (const auto span : status->getSpans()) {
    trace << R"({"name":")" << span.getName().cStr() << R"(","ph":"X","pid":)" << getpid()
          << R"(,"tid":)" << row->second << R"(,"ts":)" << span.getStartUs() << R"(,"dur":)"
          << span.getDurationUs() << "},\n";
  }
  trace.flush();
}

// The names of actors name their nodes.
node_snapshot telemetry_state::of_all_nodes() const {
  node_snapshot all = snapshot;
  for (const auto& [node, last] : joined) {
    all.last_report_ms[node] = last.received_ms;
    for (const auto actor : last.status->getActors())
      all.actors[std::string(view(actor.getName()))] = copy_record<schema::ActorStatus>(actor);
  }
  return all;
}

node_status_record telemetry_state::report() const {
  record_builder<schema::NodeStatus> status;
  status->setNode(options.node);
  status->setSchemaVersion(schema_version);
  status->setJudgeVersion(judge_version);
  auto types = status->initDeviceTypes(static_cast<unsigned>(options.device_types.size()));
  for (unsigned i = 0; i < types.size(); ++i) types.setWithCaveats(i, *options.device_types[i]);
  auto actors = status->initActors(static_cast<unsigned>(snapshot.actors.size()));
  unsigned a = 0;
  for (const auto& [name, one] : snapshot.actors) {
    actors.setWithCaveats(a, *one);
    if (const auto rate = snapshot.rates.find(name); rate != snapshot.rates.end())
      actors[a].setRate(rate->second);
    if (const auto restarts = snapshot.restarts.find(name); restarts != snapshot.restarts.end())
      actors[a].setRestarts(restarts->second);
    actors[a++].initSpans(0);
  }
  if (snapshot.run) status->setRun(*snapshot.run);
  return status.finish();
}

telemetry_actor::behavior_type telemetry_behavior(
    telemetry_actor::stateful_pointer<telemetry_state> self, telemetry_options options,
    pool_actor pool, node_actor uplink) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.pause = s.options.interval;
  s.pool = std::move(pool);
  s.uplink = std::move(uplink);
  if (!s.options.trace.empty()) {
    remove_cut_line(s.options.trace);
    s.trace.open(s.options.trace, std::ios::app);
    if (s.trace.tellp() == std::streampos(0)) s.trace << "[\n";
  }
  self->set_down_handler([self](const caf::down_msg& down) {
    auto& ended = self->state;
    std::erase_if(ended.watched,
                  [&](const caf::actor& one) { return one.address() == down.source; });
    // Its counts stay in the status, and it does nothing more.
    const auto name = ended.names.extract(down.source);
    if (name.empty()) return;
    ended.snapshot.rates[name.mapped()] = 0;
    if (!down.reason || down.reason == caf::exit_reason::user_shutdown)
      ended.stopped.insert(name.mapped());
  });
  self->send(self, tick_atom_v);
  return {
      [self](watch_atom, const caf::strong_actor_ptr& one) {
        self->state.watched.push_back(caf::actor_cast<caf::actor>(one));
        self->monitor(one);
      },
      [self](const node_status_record& other) {
        self->state.joined[std::string(view(other->getNode()))] = {other, unix_ms()};
      },
      [self](leave_atom, const std::string& node) { self->state.joined.erase(node); },
      [self](status_atom) {
        std::vector<node_status_record> all = {self->state.report()};
        for (const auto& [name, entry] : self->state.joined) all.push_back(entry.status);
        return all;
      },
      [self](finish_atom) {
        auto promise = self->make_response_promise<done_atom>();
        self->state.start_last_round(promise);
        return promise;
      },
      [self](tick_atom) { self->state.start_round(); },
  };
}

}  // namespace hone
