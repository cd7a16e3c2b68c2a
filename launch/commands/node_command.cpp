#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "actors/error_text.hpp"
#include "actors/node.hpp"
#include "actors/telemetry.hpp"
#include "evaluation/devices.hpp"
#include "evaluation/variant_compiler.hpp"
#include "launch/commands/commands.hpp"
#include "launch/copy_relay.hpp"
#include "launch/generator_setup.hpp"
#include "launch/joining.hpp"
#include "launch/metrics/metrics_server.hpp"
#include "launch/node_cache.hpp"
#include "launch/slow_notice.hpp"
#include "launch/stop_signals.hpp"
#include "launch/system.hpp"
#include "network/connecting.hpp"
#include "policy/policy_device.hpp"
#include "policy/policy_memory.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

struct node_arguments {
  head_address head;
  std::vector<std::string> devices;
  std::string name;
  std::vector<std::string> generators;  // the devices on which they write
  std::string cache;
  std::string pass_on;
  std::string metrics;
  std::int64_t compilers = 1;
  bool share_cores = false;
  bool no_baselines = false;
  std::int64_t wait_s = 60;
  std::int64_t patience_s = 600;
  double heartbeat_s = 2;
  double silence_s = 15;
};

bool have_same_tasks(const task_table& a, const task_table& b) {
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), b.all().end(),
                    [](const auto& x, const auto& y) { return x->id == y->id; });
}

// Returns a name that no other process has: of the machine and the process.
std::string default_name() {
  std::array<char, 40> host{};
  gethostname(host.data(), host.size() - 1);
  std::string name = std::string(host.data()) + " " + std::to_string(getpid());
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_node_name(std::string_view(&c, 1)); }, '-');
  return name;
}

void log(const std::string& line) { std::cout << line << std::endl; }

// The work of this process for a run: joins it, and joins it again when it was lost.
class membership {
 public:
  explicit membership(const node_arguments& a)
      : a_(a), name_(a.name.empty() ? default_name() : a.name) {
    if (!is_node_name(name_))
      throw std::runtime_error(
          "--name: '" + name_ +
          "' is no name for a node: up to 64 letters, digits, spaces, '.', '-' "
          "and '_'");
    refuse_bad_address();  // before any core is reserved
    // A node without devices compiles for every device type, so it needs the CUDA toolchain.
    if (a.devices.empty() && a.compilers > 0) variant_compiler::require_cuda_toolchain();
    // Planning reserves cores, which must happen before threads are started.
    devices_ = plan_devices(
        a.devices, {.node = name_, .share_cores = a.share_cores, .baselines = !a.no_baselines});
    shared_ = share_gpus(a.generators, devices_, log);
    if (!shared_.empty()) set_policy_environment(share_beside_judge);
    metrics_ = serve_metrics("--metrics", a.metrics, {}, log);
    const auto ms = [](double s) {
      return std::chrono::milliseconds(static_cast<std::int64_t>(s * 1000));
    };
    system_ = &start_actor_system({ms(a.heartbeat_s), ms(a.silence_s)});
  }

  // Returns the exit code.
  int work() {
    caf::scoped_actor self(*system_);
    end_at_stop_signals();
    joined_run joined = join_first();
    if (kinds_of(devices_).has_simulated)
      set_simulated(devices_, name_, parse_simulated(joined.configuration));
    node_options own;
    own.name = name_;
    own.devices = devices_;
    own.compilers = static_cast<std::size_t>(a_.compilers);
    own.log = log;
    own.generation = plan_generators(joined);
    telemetry_actor telemetry = watch(joined);
    const auto working = system_->spawn(node_behavior, own, joined.wiring, joined.tasks, telemetry);
    self->monitor(working);
    self->monitor(joined.wiring.uplink);
    log(name_ + " works for the run at " + a_.head.address + " with " +
        counted(devices_.size(), "device") + ", " + counted(own.compilers, "compiler") + ", " +
        (a_.generators.empty() ? "" : counted(a_.generators.size(), "generator") + ", ") +
        counted(joined.tasks->all().size(), "task"));
    catch_stop_signals();
    for (;;) {
      const std::optional<caf::down_msg> down = next_end(self);
      if (was_asked_to_stop()) return leave(self, working, joined);
      if (!down) continue;
      if (down->source == working.address()) return say_end(down->reason);
      if (down->source != joined.wiring.uplink.address()) continue;  // of an earlier stay
      caf::anon_send(working, leave_atom_v);
      caf::anon_send_exit(telemetry, caf::exit_reason::user_shutdown);
      std::optional<joined_run> again = join_again(*joined.tasks);
      if (!again) return say_left();
      joined = std::move(*again);
      telemetry = watch(joined);
      self->monitor(joined.wiring.uplink);
      caf::anon_send(working, join_atom_v, joined.wiring, telemetry, plan_generators(joined));
      log(name_ + " has joined the run again");
    }
  }

 private:
  using clock = std::chrono::steady_clock;

  // Waits a moment for the end of an actor that is monitored.
  static std::optional<caf::down_msg> next_end(caf::scoped_actor& self) {
    std::optional<caf::down_msg> down;
    self->receive([&](const caf::down_msg& gone) { down = gone; },
                  caf::after(signal_pause) >> [] {});
    return down;
  }

  // Has the workers finish what they have, and waits until the head has heard of it.
  int leave(caf::scoped_actor& self, const working_node_actor& working, const joined_run& joined) {
    log(name_ + " finishes what it has and takes nothing new; a second signal ends it at once");
    caf::anon_send(working, finish_atom_v);
    const auto end = clock::now() + leave_limit;
    for (bool has_finished = false; !has_finished && clock::now() < end;) {
      const std::optional<caf::down_msg> down = next_end(self);
      if (down && down->source == joined.wiring.uplink.address()) return say_left();
      has_finished = down && down->source == working.address();
      if (has_finished && down->reason) return say_end(down->reason);
    }
    // The messages of a connection arrive in order.
    self->request(joined.wiring.verifies, last_answer_limit, status_atom_v)
        .receive([](const actor_status_record&) {}, [](const caf::error&) {});
    return say_left();
  }

  int say_left() const {
    log(name_ + " has left the run");
    return 0;
  }

  void refuse_bad_address() const {
    try {
      (void)find_address(a_.head);
    } catch (const nobody_listens&) {  // the file of the address is not written yet
    }
  }

  join_options joining() const {
    return {.head = a_.head,
            .name = name_,
            .devices = kinds_of(devices_),
            .times_baselines = !a_.no_baselines,
            .generators = a_.generators.size()};
  }

  joined_run join_first() {
    const slow_notice waiting([this] { return "waiting for the run at " + a_.head.address; });
    return join_run(*system_, joining(), std::chrono::seconds(a_.wait_s), nullptr,
                    [this] { return cache(); });
  }

  // Returns the folder of copies, which is made when it is needed first.
  std::filesystem::path cache() {
    if (!cache_) cache_.emplace(a_.cache);
    return cache_->folder();
  }

  // Tries until the node's patience ends, or until the node is to stop; then there is no result.
  // Throws network_error.
  std::optional<joined_run> join_again(const task_table& tasks) {
    log("the run at " + a_.head.address + " is lost; trying to join it again for " +
        std::to_string(a_.patience_s) + " s");
    const auto end = clock::now() + std::chrono::seconds(a_.patience_s);
    for (std::chrono::milliseconds pause = first_pause;; pause = std::min(2 * pause, last_pause)) {
      try {
        joined_run joined = join_run(*system_, joining(), std::chrono::seconds(0), &tasks,
                                     [this] { return cache(); });
        if (!have_same_tasks(*joined.tasks, tasks))
          throw refused_by_head(a_.head.address + ": another run, with other tasks, listens there");
        return joined;
      } catch (const connection_failed&) {
        if (clock::now() + pause > end && !was_asked_to_stop()) throw;
      }
      for (const auto next = clock::now() + pause; clock::now() < next;) {
        if (was_asked_to_stop()) return std::nullopt;
        std::this_thread::sleep_for(signal_pause);
      }
    }
  }

  // Returns the generators as the run wants them now.
  generation_plan plan_generators(const joined_run& joined) {
    generation_plan plan;
    if (a_.generators.empty()) return plan;
    const std::filesystem::path folder = cache();
    const auto inputs = read_generator_setup(joined.configuration, joined.setup, folder);
    if (!std::exchange(has_policy_threads_, true))
      set_policy_threads(static_cast<int>(inputs->settings.policy.threads));
    plan.learner = joined.learner;
    if (!relay_) relay_.emplace(a_.head, name_, a_.pass_on, log);
    plan.fetching.sources = relay_->sources();
    plan.fetching.cache = folder;
    const auto policy = std::make_shared<policy_copy>(plan.fetching.sources, folder);
    plan.fetching.prepare = [policy](const auto& checkpoint) {
      prepare_checkpoint(checkpoint, *policy);
    };
    const bool is_model = inputs->settings.policy.kind == "model";
    if (is_model) check_devices(inputs->settings.policy.device);
    std::uint64_t replica = joined.setup->getFirstReplica();
    for (const std::string& device : a_.generators) {
      planned_generator one;
      one.device = device;
      one.options.prompts = inputs->prompts;
      const auto shared = shared_.find(device);
      if (is_model && shared != shared_.end()) one.options.gpu = shared->second;
      if (is_model) one.options.prepare = [policy] { (void)policy->folder(); };
      one.options.make_sampler = [inputs, device, replica, policy, is_model] {
        configuration settings = inputs->settings;
        if (is_model) settings.policy.folder = policy->folder().string();
        return make_sampler(settings, device, replica, log);
      };
      plan.generators.push_back(std::move(one));
      ++replica;
    }
    return plan;
  }

  // Throws std::runtime_error if generators would run on another kind of device than the policy is
  // made for.
  void check_devices(const std::string& policy_device) const {
    const bool is_cuda = policy_device.starts_with("cuda");
    for (const std::string& device : a_.generators) {
      if (device.starts_with("cuda") != is_cuda)
        throw std::runtime_error("--generators names " + device + ", and the run's policy is on " +
                                 policy_device + "; both must be CPUs or GPUs");
    }
  }

  telemetry_actor watch(const joined_run& joined) {
    telemetry_options watching;
    watching.node = name_;
    for (const planned_device& device : devices_) watching.device_types.push_back(device.type);
    if (metrics_) watching.show = [to = metrics_](const node_snapshot& now) { to->show(now); };
    return system_->spawn(telemetry_behavior, watching, pool_actor(), joined.wiring.uplink);
  }

  int say_end(const caf::error& reason) const {
    if (!reason) {
      log("the run at " + a_.head.address + " has ended");
      return 0;
    }
    log("this node failed: " + text_of(*system_, reason));
    return 1;
  }

  static constexpr std::chrono::milliseconds signal_pause{100};  // between looks for a signal
  // How long the jobs that its workers have may take. Launchers leave a process 30 s.
  static constexpr std::chrono::seconds leave_limit{25};
  static constexpr std::chrono::seconds last_answer_limit{3};
  static constexpr std::chrono::milliseconds first_pause{200};
  static constexpr std::chrono::milliseconds last_pause{5000};
  const node_arguments& a_;
  std::string name_;
  std::vector<planned_device> devices_;
  std::map<std::string, shared_gpu> shared_;  // by the generator's device
  std::shared_ptr<metrics_server> metrics_;   // null without --metrics
  std::optional<node_cache> cache_;
  std::optional<copy_relay> relay_;  // of a node with generators
  bool has_policy_threads_ = false;  // LibTorch takes their number once
  caf::actor_system* system_ = nullptr;
};

std::string find_address_problem(const std::string& text) {
  try {
    (void)parse_address(text, /*allows_any_port=*/true);
  } catch (const network_error& e) {
    return e.what();
  }
  return {};
}

void add_generator_options(CLI::App& command, node_arguments& given) {
  command
      .add_option("--generators", given.generators,
                  "devices of generators, separated by commas: cpu, cuda or cuda:NUMBER; one that "
                  "also judges is shared")
      ->delimiter(',')
      ->check(CLI::Validator(
          [](const std::string& name) {
            const bool is_known = name == "cpu" || name == "cuda" || name.starts_with("cuda:");
            return is_known ? "" : "'" + name + "' is none of cpu, cuda and cuda:NUMBER";
          },
          ""));
  command.add_option("--cache", given.cache,
                     "folder for what is copied from the run: checkpoints, the policy and tasks' "
                     "data files (default: one under ~/.cache/hone/nodes that is removed in the "
                     "end)");
  command
      .add_option("--pass-on", given.pass_on,
                  "HOST:PORT to listen at for nodes that take copies of checkpoints from this "
                  "one, or `no` (default: any free port; without an identity, for nodes on "
                  "this machine alone)")
      ->check(CLI::Validator(
          [](const std::string& text) { return text == "no" ? "" : find_address_problem(text); },
          ""));
}

void add_patience_options(CLI::App& command, node_arguments& given) {
  command
      .add_option("--wait", given.wait_s,
                  "seconds to wait for a run that does not listen yet, so that nodes may be "
                  "started before it")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  command
      .add_option("--patience", given.patience_s,
                  "seconds to try to join again when the run was lost; devices wait meanwhile")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  command.add_option("--heartbeat", given.heartbeat_s, "as node.heartbeat_s of the run")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 60.0));
  command.add_option("--silence", given.silence_s, "as node.silence_s of the run")
      ->capture_default_str()
      ->check(CLI::Range(0.2, 3600.0));
}

}  // namespace

void add_node_command(CLI::App& app, command_action& action) {
  auto given = std::make_shared<node_arguments>();
  CLI::App* command = app.add_subcommand(
      "node", "Add workers to a live run, until it ends or this process is stopped");
  command
      ->add_option("--join", given->head.address,
                   "HOST:PORT of the run, or a file that holds it, such as `address` in the run's "
                   "directory")
      ->required();
  command->add_option("--identity", given->head.identity,
                      "folder of the node's identity (`hone identity`); without one, only a run on "
                      "this machine can be joined");
  command
      ->add_option("--devices", given->devices,
                   "devices that judge, separated by commas: cpu, cuda (all GPUs), cuda:NUMBER or "
                   "simulated:NAME")
      ->delimiter(',');
  add_generator_options(*command, *given);
  command->add_option("--name", given->name,
                      "name of the node in the run (default: the machine's and the process id)");
  command->add_option("--compilers", given->compilers, "number of compilers")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  command->add_flag("--share-cores", given->share_cores,
                    "let devices share processor cores, which makes their scores meaningless");
  command->add_flag("--no-baselines", given->no_baselines,
                    "time no baselines, as node.baselines = false does; a run whose reward "
                    "depends on them refuses the node");
  command
      ->add_option(
          "--metrics", given->metrics,
          "HOST:PORT at which Prometheus reads this node's metrics, as node.metrics of the "
          "run; port 0 takes a free one (default: off)")
      ->check(CLI::Validator(find_address_problem, ""));
  add_patience_options(*command, *given);
  command->callback([given, &action] {
    if (given->silence_s < min_heartbeats_in_silence * given->heartbeat_s)
      throw CLI::ValidationError("--silence", "must be three times --heartbeat or more");
    if (given->devices.empty() && given->compilers == 0 && given->generators.empty())
      throw CLI::ValidationError("--compilers",
                                 "a node without devices and generators needs at least one");
    action = [given] { return membership(*given).work(); };
  });
}

}  // namespace hone
