#include "launch/run/run_actors.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "launch/generator_setup.hpp"
#include "launch/run/run_inputs.hpp"
#include "launch/run/stream_inputs.hpp"
#include "policy/policy_device.hpp"

namespace hone {
namespace {

class actor_starter {
 public:
  actor_starter(caf::actor_system& system, const run_parts& parts, caf::scoped_actor& supervisor)
      : system_(system),
        parts_(parts),
        head_(parts.head),
        settings_(parts.head.settings),
        supervisor_(supervisor) {}

  run_actors start() {
    lease_shared_devices();
    started_.head = start_head(system_, head_, supervisor_);
    for (auto& [user, gpu] : shared_) gpu.node = started_.head.node;
    if (settings_.generation.replicas > 0) exchange_ = std::make_shared<weights_exchange>();
    start_learner();
    start_generators();
    watch_actors();
    open_door(system_, head_, started_.head);
    for (const group_record& group : parts_.corpus_groups)
      supervisor_->send(started_.head.pool, submit_atom_v, group);
    return started_;
  }

 private:
  // If a device times variants on a GPU of the policy, its jobs also wait for GPU leases: one of
  // each generator there, and one of the learner.
  void lease_shared_devices() {
    if (settings_.policy.kind != "model") return;
    std::vector<std::string> users = devices_of_generators(settings_);
    users.push_back(settings_.policy.device);
    shared_ = share_gpus(users, head_.devices, head_.log);
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
      options.run_folder = head_.folder.path();
      options.prompts = parts_.prompts;
      options.exchange = exchange_;
      options.is_distant = is_distant(device);
      options.gpu = shared_[device];
      options.learner = started_.learner;
      options.make_sampler = [&settings = settings_, device, stream = first_stream + i,
                              log = head_.log] {
        return make_sampler(settings, device, stream, log);
      };
      started_.generators.push_back(
          system_.spawn<caf::detached>(generator_behavior, "generator " + std::to_string(i),
                                       options, head_.tasks, started_.head.pool));
      ++i;
    }
  }

  void start_learner() {
    learner_options options = settings_.learner;
    options.run_folder = head_.folder.path();
    options.tasks = head_.tasks;
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
    options.log = head_.log;
    options.metrics = parts_.metrics;
    options.streams = settings_.stream.workers > 0;
    options.make_curriculum = [&settings = settings_, prompts = parts_.prompts, tasks = head_.tasks,
                               excluded = parts_.stream_excludes,
                               types = device_types_of(head_.devices)] {
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
    started_.learner = system_.spawn<caf::detached>(learner_behavior, options, started_.head.pool,
                                                    caf::actor(supervisor_.ptr()));
    caf::anon_send(started_.head.node, generate_atom_v, started_.learner);
  }

  void watch_actors() {
    watch(started_.head, started_.learner);
    supervisor_->monitor(started_.learner);
    for (const generator_actor& generator : started_.generators) {
      watch(started_.head, generator);
      supervisor_->monitor(generator);
    }
  }

  caf::actor_system& system_;
  const run_parts& parts_;
  head_parts head_;  // with the longer limits of devices that the policy shares
  const configuration& settings_;
  std::shared_ptr<weights_exchange> exchange_;  // null without generators here
  caf::scoped_actor& supervisor_;
  std::map<std::string, shared_gpu> shared_;  // by device of the policy
  run_actors started_;
};

}  // namespace

run_actors start_run_actors(caf::actor_system& system, const run_parts& parts,
                            caf::scoped_actor& supervisor) {
  return actor_starter(system, parts, supervisor).start();
}

}  // namespace hone
