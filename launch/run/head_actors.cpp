#include "launch/run/head_actors.hpp"

#include <signal.h>

#include <caf/io/all.hpp>

#include <algorithm>
#include <future>
#include <stdexcept>

#include "actors/work_queue.hpp"
#include "launch/core_wait.hpp"
#include "launch/generator_setup.hpp"
#include "launch/system.hpp"
#include "launch/task_copies.hpp"
#include "messages/versions.hpp"
#include "network/basp/basp_link.hpp"
#include "network/thread_priority.hpp"

namespace hone {
namespace {

// Credits of a compiler: few, or many if all devices answer in microseconds, so that the queues
// stay full.
constexpr std::uint32_t few_credits = 2;
constexpr std::uint32_t many_credits = 64;

constexpr const char* first_node = "node 0";

pool_actor start_pool(caf::actor_system& system, const head_parts& parts,
                      caf::scoped_actor& supervisor) {
  pool_actor_options options = parts.pool;
  options.storage.folder = parts.folder.pool();
  options.storage.judge_version = judge_version;
  if (!options.acknowledgments.empty())
    options.acknowledgments = (parts.folder.path() / options.acknowledgments).string();
  return system.spawn<caf::detached>(pool_behavior, options, parts.tasks,
                                     caf::actor(supervisor.ptr()));
}

node_wiring start_queues(caf::actor_system& system, const pool_actor& pool) {
  node_wiring wiring;
  wiring.pool = pool;
  wiring.compiles = system.spawn(work_queue_behavior<compile_job>, std::string("compile"), pool);
  wiring.verifies = system.spawn(work_queue_behavior<verify_job>, std::string("verify"), pool);
  wiring.benchmarks =
      system.spawn(work_queue_behavior<benchmark_job>, std::string("benchmark"), pool);
  caf::anon_send(pool, connect_atom_v, wiring.compiles, wiring.verifies);
  return wiring;
}

telemetry_actor start_telemetry(caf::actor_system& system, const head_parts& parts,
                                const pool_actor& pool) {
  telemetry_options options;
  options.node = first_node;
  for (const planned_device& device : parts.devices) options.device_types.push_back(device.type);
  if (parts.settings.trace) options.trace = parts.folder.path() / "trace.json";
  options.show = parts.show;
  return system.spawn(telemetry_behavior, options, pool, node_actor());
}

working_node_actor start_node(caf::actor_system& system, const head_parts& parts,
                              const head_actors& head) {
  node_options options = parts.settings.node.options;
  options.name = first_node;
  options.devices = parts.devices;
  options.kinds_of_scores = kinds_of(parts.scored_device_types);
  options.needs_baselines = parts.needs_baselines;
  const bool is_fast = !parts.devices.empty() &&
                       std::all_of(parts.devices.begin(), parts.devices.end(),
                                   [](const auto& device) { return device.credits > few_credits; });
  options.compiler_credits = is_fast ? many_credits : few_credits;
  options.configuration = print_configuration(parts.settings, false);
  options.setup = parts.setup;
  options.on_new_type = parts.on_new_type;
  options.log = parts.log;
  return system.spawn(node_behavior, options, head.wiring, parts.tasks, head.telemetry);
}

}  // namespace

run_folder::resume_point find_resume_point(const run_folder& folder,
                                           const std::function<void(const std::string&)>& say) {
  const auto find = [&] {
    let_messages_pass(thread_work::run);
    return folder.find_resume_point(say);
  };
  return std::async(std::launch::async, find).get();
}

void refuse_to_mix(const configuration& c, const run_folder& folder,
                   const std::set<std::string>& scored_device_types) {
  device_kinds kinds = kinds_of(scored_device_types);
  for (const std::string& device : c.node.devices)
    (is_simulated(device) ? kinds.has_simulated : kinds.has_real) = true;
  if (kinds.has_real && kinds.has_simulated && !c.node.options.mixes_simulation)
    throw std::runtime_error(
        folder.path().string() +
        ": the run's scores are from simulated devices, which make them up, and its devices are "
        "real, or the other way round (node.mix_simulated = true allows it, to test a system)");
}

void ignore_signals_of_writes() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

std::vector<planned_device> plan_head_devices(const configuration& c, bool waits_for_cores) {
  return plan_devices(c.node.devices, {.node = first_node,
                                       .share_cores = c.node.share_cores,
                                       .baselines = c.node.baselines,
                                       .simulated = c.simulated,
                                       .begin_to_wait = core_wait(waits_for_cores)});
}

head_actors start_head(caf::actor_system& system, const head_parts& parts,
                       caf::scoped_actor& supervisor) {
  head_actors head;
  head.pool = start_pool(system, parts, supervisor);
  head.wiring = start_queues(system, head.pool);
  head.telemetry = start_telemetry(system, parts, head.pool);
  head.node = start_node(system, parts, head);
  watch(head, head.pool);
  watch(head, head.wiring.compiles);
  watch(head, head.wiring.verifies);
  watch(head, head.wiring.benchmarks);
  return head;
}

void open_door(caf::actor_system& system, const head_parts& parts, head_actors& head) {
  const configuration& settings = parts.settings;
  acceptor_options options;
  options.listen = settings.node.listen.empty()
                       ? network_address{"127.0.0.1", settings.node.port}
                       : parse_address(settings.node.listen, /*allows_any_port=*/true);
  options.identity = settings.node.identity;
  options.find_problem = [](const preface& said) -> std::string {
    if (said.name == first_node) return "this is the name of the run's first node";
    return find_version_problem(said.versions, versions_of_this_program());
  };
  head.files =
      std::make_shared<file_server>([policy = offer_policy(settings, parts.folder.path()),
                                     data = offer_task_data(parts.tasks)](const std::string& name) {
        const auto of_task = data(name);
        return of_task != nullptr ? of_task : policy(name);
      });
  head.files->spread_over_nodes();
  head.pages = std::make_shared<page_door>(parts.folder.path());
  options.admit = [link = basp_link(system), node = caf::actor_cast<caf::actor>(head.node),
                   files = head.files, pages = head.pages](admitted_peer peer) {
    if (peer.said.purpose == files_purpose) {
      files->serve(std::move(peer.connection));
    } else if (peer.said.purpose == pages_purpose) {
      pages->serve(std::move(peer.connection));
    } else {
      link.serve(std::move(peer.connection), node);
    }
  };
  options.log = parts.log;
  head.door = std::make_shared<acceptor>(std::move(options));
  network_address at = head.door->address();
  if (at.host == "0.0.0.0" || at.host == "::") at.host = "localhost";  // for this machine
  const std::string address = to_string(at);
  parts.folder.write("address", address + "\n");
  parts.folder.write("identity", settings.node.identity + "\n");
  parts.log("listening on " + address + " (hone status --dir " + parts.folder.path().string() +
            ")");
}

}  // namespace hone
