#include <unistd.h>

#include <chrono>
#include <iostream>

#include "actors/node.hpp"
#include "actors/telemetry.hpp"
#include "evaluation/devices.hpp"
#include "evaluation/variant_compiler.hpp"
#include "launch/commands/commands.hpp"
#include "launch/slow_notice.hpp"
#include "launch/system.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

constexpr auto answer_limit = std::chrono::seconds(10);

struct node_arguments {
  std::string join;
  std::vector<std::string> devices;
  std::string name;
  std::int64_t compilers = 1;
  bool share_cores = false;
  bool no_baselines = false;
  std::int64_t wait_s = 60;
};

struct joined_run {
  node_wiring wiring;
  std::shared_ptr<const task_table> tasks;
};

joined_run join(caf::actor_system& system, const node_arguments& a, const std::string& name,
                device_kinds kinds) {
  const std::string& address = a.join;
  joined_run joined;
  {
    const slow_notice waiting([&address] { return "waiting for the run at " + address; });
    joined.wiring.uplink = connect(system, address, std::chrono::seconds(a.wait_s));
  }
  record_builder<schema::JoinRequest> request;
  request->setSchemaVersion(schema_version);
  request->setJudgeVersion(judge_version);
  request->setNode(name);
  request->setHasRealDevices(kinds.has_real);
  request->setHasSimulatedDevices(kinds.has_simulated);
  request->setTimesBaselines(!a.no_baselines);
  std::vector<task_record> known;
  std::string problem;
  caf::scoped_actor self(system);
  self->request(joined.wiring.uplink, answer_limit, join_atom_v, request.finish())
      .receive(
          [&](const compile_queue_actor& compiles, const verify_queue_actor& verifies,
              const benchmark_queue_actor& benchmarks, const pool_actor& pool,
              const std::vector<task_record>& tasks) {
            joined.wiring.compiles = compiles;
            joined.wiring.verifies = verifies;
            joined.wiring.benchmarks = benchmarks;
            joined.wiring.pool = pool;
            known = tasks;
          },
          [&](const caf::error& e) { problem = system.render(e); });
  if (!problem.empty())
    throw std::runtime_error(address + ": the run refused the node: " + problem);
  auto table = std::make_shared<task_table>();
  for (const task_record& t : known) table->add(from_record(*t));
  joined.tasks = table;
  return joined;
}

int work_for(const node_arguments& a) {
  const std::string name = a.name.empty() ? "node " + std::to_string(getpid()) : a.name;
  (void)parse_address(a.join);  // refuses a bad address before any core is reserved
  // A node without devices compiles for every device type, so it needs the CUDA toolchain.
  if (a.devices.empty()) variant_compiler::require_cuda_toolchain();
  // Planning reserves cores, which must happen before threads are started.
  const auto devices = plan_devices(
      a.devices, {.node = name, .share_cores = a.share_cores, .baselines = !a.no_baselines});
  auto& system = start_actor_system();
  const joined_run joined = join(system, a, name, kinds_of(devices));
  const auto log = [](const std::string& line) { std::cout << line << std::endl; };

  telemetry_options watching;
  watching.node = name;
  for (const planned_device& device : devices) watching.device_types.push_back(device.type);
  const auto telemetry =
      system.spawn(telemetry_behavior, watching, pool_actor(), joined.wiring.uplink);
  node_options own;
  own.name = name;
  own.devices = devices;
  own.compilers = static_cast<std::size_t>(a.compilers);
  own.log = log;
  caf::scoped_actor self(system);
  self->monitor(joined.wiring.uplink);
  const auto working = system.spawn(node_behavior, own, joined.wiring, joined.tasks, telemetry);
  self->monitor(working);
  log(name + " works for the run at " + a.join + " with " + std::to_string(devices.size()) +
      " devices and " + std::to_string(a.compilers) + " compilers, " +
      std::to_string(joined.tasks->all().size()) + " tasks");
  int code = 0;
  self->receive([&](const caf::down_msg& down) {
    const bool is_run = down.source == joined.wiring.uplink.address();
    log(is_run ? "the run at " + a.join + " is gone"
               : "this node failed: " + system.render(down.reason));
    code = is_run ? 0 : 1;
  });
  return code;
}

}  // namespace

void add_node_command(CLI::App& app, command_action& action) {
  auto given = std::make_shared<node_arguments>();
  CLI::App* command = app.add_subcommand(
      "node", "Add workers to a live run, until it ends or this process is stopped");
  command->add_option("--join", given->join, "HOST:PORT of the run; loopback addresses only")
      ->required();
  command
      ->add_option(
          "--devices", given->devices,
          "devices, separated by commas: cpu, cuda (all GPUs), cuda:NUMBER or simulated:NAME; "
          "without devices, the node only compiles")
      ->delimiter(',');
  command->add_option("--name", given->name,
                      "name of the node in `hone status` (default: node and the process id)");
  command->add_option("--compilers", given->compilers, "number of compilers")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  command->add_flag("--share-cores", given->share_cores,
                    "let devices share processor cores, which makes their scores meaningless");
  command->add_flag("--no-baselines", given->no_baselines,
                    "time no baselines, as node.baselines = false does; a run whose reward "
                    "depends on them refuses the node");
  command
      ->add_option("--wait", given->wait_s,
                   "seconds to wait for a run that does not listen yet, so that nodes may be "
                   "started before it")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  command->callback([given, &action] {
    if (given->devices.empty() && given->compilers == 0)
      throw CLI::ValidationError("--compilers", "a node without devices needs at least one");
    action = [given] { return work_for(*given); };
  });
}

}  // namespace hone
