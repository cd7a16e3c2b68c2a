#include "launch/run/run_actors.hpp"

#include <caf/io/all.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "actors/pool.hpp"
#include "actors/work_queue.hpp"
#include "launch/generator_setup.hpp"
#include "launch/run/run_inputs.hpp"
#include "launch/run/stream_inputs.hpp"
#include "launch/system.hpp"
#include "launch/task_copies.hpp"
#include "messages/versions.hpp"
#include "network/basp/basp_link.hpp"
#include "policy/policy_device.hpp"

namespace hone {
namespace {

// Credits of a compiler: few, or many if all devices answer in microseconds, so that the queues
// stay full.
constexpr std::uint32_t few_credits = 2;
constexpr std::uint32_t many_credits = 64;

constexpr const char* first_node = "node 0";

class actor_starter {
 public:
  actor_starter(caf::actor_system& system, const run_parts& parts, caf::scoped_actor& supervisor)
      : system_(system),
        parts_(parts),
        settings_(parts.settings),
        devices_(parts.devices),
        supervisor_(supervisor) {}

  run_actors start() {
    start_pool();
    start_queues();
    start_telemetry();
    lease_shared_devices();
    start_node();
    if (settings_.generation.replicas > 0) exchange_ = std::make_shared<weights_exchange>();
    start_learner();
    start_generators();
    watch_actors();
    open_door();
    for (const group_record& group : parts_.corpus_groups)
      supervisor_->send(started_.pool, submit_atom_v, group);
    return started_;
  }

 private:
  void start_pool() {
    pool_actor_options options = settings_.pool;
    options.storage.folder = parts_.folder.pool();
    options.storage.judge_version = judge_version;
    const curriculum_options& plan = settings_.learner.plan;
    options.draws.step_groups =
        static_cast<std::size_t>(std::max(plan.self_supervised.groups, plan.contrastive.groups));
    options.draws.first_place = parts_.from.next_version * options.draws.step_groups;
    if (!options.acknowledgements.empty())
      options.acknowledgements = (parts_.folder.path() / options.acknowledgements).string();
    started_.pool = system_.spawn<caf::detached>(pool_behavior, options, parts_.tasks,
                                                 caf::actor(supervisor_.ptr()));
    wiring_.pool = started_.pool;
  }

  void start_queues() {
    wiring_.compiles =
        system_.spawn(work_queue_behavior<compile_job>, std::string("compile"), started_.pool);
    wiring_.verifies =
        system_.spawn(work_queue_behavior<verify_job>, std::string("verify"), started_.pool);
    wiring_.benchmarks =
        system_.spawn(work_queue_behavior<benchmark_job>, std::string("benchmark"), started_.pool);
    caf::anon_send(started_.pool, connect_atom_v, wiring_.compiles, wiring_.verifies);
  }

  void start_telemetry() {
    telemetry_options options;
    options.node = first_node;
    for (const planned_device& device : devices_) options.device_types.push_back(device.type);
    if (settings_.trace) options.trace = parts_.folder.path() / "trace.json";
    options.show = parts_.show;
    started_.telemetry = system_.spawn(telemetry_behavior, options, started_.pool, node_actor());
  }

  // If a device times variants on a GPU of the policy, its jobs also wait for GPU leases: one of
  // each generator there, and one of the learner.
  void lease_shared_devices() {
    if (settings_.policy.kind != "model") return;
    std::vector<std::string> users = devices_of_generators(settings_);
    users.push_back(settings_.policy.device);
    shared_ = share_gpus(users, devices_, parts_.log);
  }

  void start_node() {
    node_options options = settings_.node.options;
    options.name = first_node;
    options.devices = devices_;
    options.kinds_of_scores = kinds_of(parts_.from.scored_device_types);
    options.needs_baselines = needs_baselines(settings_.learner.plan.contrastive.reward);
    const bool is_fast =
        !devices_.empty() && std::all_of(devices_.begin(), devices_.end(), [](const auto& device) {
          return device.credits > few_credits;
        });
    options.compiler_credits = is_fast ? many_credits : few_credits;
    options.configuration = print_configuration(settings_, false);
    // Endpoints have limits of their own, which one generator keeps.
    if (settings_.policy.kind != "endpoint") options.setup = make_generator_setup(settings_);
    options.on_new_type = parts_.on_new_type;
    options.log = parts_.log;
    started_.node =
        system_.spawn(node_behavior, options, wiring_, parts_.tasks, started_.telemetry);
    for (auto& [user, gpu] : shared_) gpu.node = started_.node;
  }

  void open_door() {
    acceptor_options options;
    options.listen = settings_.node.listen.empty()
                         ? network_address{"127.0.0.1", settings_.node.port}
                         : parse_address(settings_.node.listen, /*allows_any_port=*/true);
    options.identity = settings_.node.identity;
    options.find_problem = [](const preface& said) -> std::string {
      if (said.name == first_node) return "this is the name of the run's first node";
      return find_version_problem(said.versions, versions_of_this_program());
    };
    started_.files = std::make_shared<file_server>(
        [policy = offer_policy(settings_, parts_.folder.path()),
         data = offer_task_data(parts_.tasks)](const std::string& name) {
          const auto of_task = data(name);
          return of_task != nullptr ? of_task : policy(name);
        });
    started_.files->spread_over_nodes();
    options.admit = [link = basp_link(system_), node = caf::actor_cast<caf::actor>(started_.node),
                     files = started_.files](admitted_peer peer) {
      if (peer.said.purpose == files_purpose) {
        files->serve(std::move(peer.connection));
      } else {
        link.serve(std::move(peer.connection), node);
      }
    };
    options.log = parts_.log;
    started_.door = std::make_shared<acceptor>(std::move(options));
    network_address at = started_.door->address();
    if (at.host == "0.0.0.0" || at.host == "::") at.host = "localhost";  // for this machine
    const std::string address = to_string(at);
    parts_.folder.write("address", address + "\n");
    parts_.folder.write("identity", settings_.node.identity + "\n");
    parts_.log("listening on " + address + " (hone status --dir " + parts_.folder.path().string() +
               ")");
  }

  // Returns whether a generator's device is another one than the learner's.
  bool is_distant(const std::string& device) const {
    return !are_same_device(device, settings_.policy.device);
  }

  void start_generators() {
    // A resumed run draws other random numbers than the run before it.
    const std::uint64_t first_stream = parts_.from.next_version << 20U;
    std::uint64_t i = 0;
    for (const std::string& device : devices_of_generators(settings_)) {
      generator_options options;
      options.run_folder = parts_.folder.path();
      options.prompts = parts_.prompts;
      options.exchange = exchange_;
      options.is_distant = is_distant(device);
      options.gpu = shared_[device];
      options.learner = started_.learner;
      options.make_sampler = [&settings = settings_, device, stream = first_stream + i,
                              log = parts_.log] {
        return make_sampler(settings, device, stream, log);
      };
      started_.generators.push_back(
          system_.spawn<caf::detached>(generator_behavior, "generator " + std::to_string(i),
                                       options, parts_.tasks, started_.pool));
      ++i;
    }
  }

  void start_learner() {
    learner_options options = settings_.learner;
    options.run_folder = parts_.folder.path();
    options.tasks = parts_.tasks;
    for (const group_record& group : parts_.corpus_groups)
      ++options.corpus_groups[group->getDraw().getDeviceType()];
    options.awaits_corpus = parts_.corpus_awaits_nodes;
    options.chain = parts_.from.chain;
    options.leaves_branch = parts_.from.leaves_branch;
    options.begins_random = begins_random(settings_);
    options.next_version = parts_.from.next_version;
    options.gpu = shared_[settings_.policy.device];
    options.exchange = exchange_;
    const auto devices = devices_of_generators(settings_);
    options.has_distant_generators =
        std::any_of(devices.begin(), devices.end(),
                    [this](const std::string& device) { return is_distant(device); });
    options.log = parts_.log;
    options.metrics = parts_.metrics;
    options.streams = settings_.stream.workers > 0;
    options.make_curriculum = [&settings = settings_, prompts = parts_.prompts,
                               tasks = parts_.tasks, excluded = parts_.stream_excludes,
                               types = device_types_of(devices_)] {
      auto made = std::make_unique<curriculum>(settings.learner.plan, make_trainer(settings),
                                               prompts, *tasks, settings.seed);
      if (settings.stream.workers == 0) return made;
      const lesson_process::settings chosen = stream_settings(settings, excluded);
      made->read_stream(
          [chosen](std::uint64_t first, std::uint64_t step) {
            return std::make_unique<lesson_process>(chosen, first, step);
          },
          {.threads = settings.stream.workers,
           .seed = settings.seed,
           .device_type = types.empty() ? chosen.device_kind : types.front()});
      return made;
    };
    started_.learner = system_.spawn<caf::detached>(learner_behavior, options, started_.pool,
                                                    caf::actor(supervisor_.ptr()));
    caf::anon_send(started_.node, generate_atom_v, started_.learner);
  }

  template <class Actor>
  void watch(const Actor& one) {
    caf::anon_send(started_.telemetry, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(one));
  }

  void watch_actors() {
    watch(started_.pool);
    watch(wiring_.compiles);
    watch(wiring_.verifies);
    watch(wiring_.benchmarks);
    watch(started_.learner);
    supervisor_->monitor(started_.learner);
    for (const generator_actor& generator : started_.generators) {
      watch(generator);
      supervisor_->monitor(generator);
    }
  }

  caf::actor_system& system_;
  const run_parts& parts_;
  const configuration& settings_;
  std::vector<planned_device> devices_;
  std::shared_ptr<weights_exchange> exchange_;  // null without generators here
  caf::scoped_actor& supervisor_;
  node_wiring wiring_;
  std::map<std::string, shared_gpu> shared_;  // by device of the policy
  run_actors started_;
};

}  // namespace

run_actors start_run_actors(caf::actor_system& system, const run_parts& parts,
                            caf::scoped_actor& supervisor) {
  return actor_starter(system, parts, supervisor).start();
}

}  // namespace hone
