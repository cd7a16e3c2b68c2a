#include <unistd.h>

#include <iostream>

#include "actors/node.hpp"
#include "actors/telemetry.hpp"
#include "evaluation/variant_compiler.hpp"
#include "launch/commands.hpp"
#include "evaluation/devices.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"
#include "launch/system.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr auto answer_limit = std::chrono::seconds(10);
// CAF reads a connection's first header before it knows who is there, and makes room for whatever
// payload it announces: strangers can keep a node's network thread busy for seconds.
constexpr auto connect_limit = std::chrono::seconds(30);

// ---- hone status

struct status_arguments {
  std::string address;
  std::string directory;
  bool json = false;
};

std::string find_address(const status_arguments& a) {
  if (!a.address.empty()) return a.address;
  const std::filesystem::path file = std::filesystem::path(a.directory) / "address";
  if (!std::filesystem::exists(file))
    throw std::runtime_error(file.string() +
                             " is not there: no run has been started in that directory");
  std::string address = read_text(file.string());
  while (!address.empty() && address.back() == '\n') address.pop_back();
  return address;
}

ordered_json named_numbers(const capnp::List<schema::NamedNumber>::Reader& numbers) {
  ordered_json all = ordered_json::object();
  for (const auto n : numbers) all[std::string(view(n.getName()))] = n.getValue();
  return all;
}

double busy_share(const schema::ActorStatus::Reader& actor) {
  return actor.getAliveSeconds() > 0 ? actor.getBusySeconds() / actor.getAliveSeconds() : 0;
}

ordered_json to_json(const schema::NodeStatus::Reader& node) {
  ordered_json types = ordered_json::array();
  for (const auto type : node.getDeviceTypes()) types.push_back(view(type.getName()));
  ordered_json actors = ordered_json::array();
  for (const auto actor : node.getActors()) {
    actors.push_back({{"name", view(actor.getName())},
                      {"room", view(actor.getRoom())},
                      {"queued", actor.getQueued()},
                      {"in_flight", actor.getInFlight()},
                      {"processed", actor.getProcessed()},
                      {"failed", actor.getFailed()},
                      {"restarts", actor.getRestarts()},
                      {"per_second", actor.getRate()},
                      {"busy", busy_share(actor)},
                      {"numbers", named_numbers(actor.getNumbers())}});
  }
  ordered_json all = {{"node", view(node.getNode())},
                      {"schema_version", node.getSchemaVersion()},
                      {"judge_version", node.getJudgeVersion()},
                      {"device_types", types},
                      {"actors", actors}};
  if (!node.hasRun()) return all;
  const auto run = node.getRun();
  ordered_json tasks = ordered_json::array();
  for (const auto t : run.getTasks())
    tasks.push_back({{"task", view(t.getName())},
                     {"device_type", view(t.getDeviceType())},
                     {"ok", t.getVariants()},
                     {"best", t.getBest()}});
  all["run"] = {{"stage", view(run.getStage())},
                {"step", run.getStep()},
                {"version", run.getVersion()},
                {"in_flight", run.getInFlight()},
                {"waiting_groups", run.getWaitingGroups()},
                {"ready_groups", run.getReadyGroups()},
                {"dropped_groups", run.getDroppedGroups()},
                {"lag", run.getLag()},
                {"outcomes", named_numbers(run.getOutcomes())},
                {"complete", run.getComplete()},
                {"tasks", tasks}};
  return all;
}

void print(const schema::NodeStatus::Reader& node) {
  std::cout << view(node.getNode()) << "  schema " << node.getSchemaVersion() << ", judge "
            << node.getJudgeVersion() << ", devices";
  for (const auto type : node.getDeviceTypes()) std::cout << " " << view(type.getName());
  std::cout << "\n"
            << pad("  actor", 34) << pad("queued", 8, true) << pad("in flight", 11, true)
            << pad("processed", 11, true) << pad("failed", 8, true) << pad("restarts", 10, true)
            << pad("per second", 12, true) << pad("busy", 9, true) << "\n";
  for (const auto actor : node.getActors()) {
    std::cout << pad("  " + std::string(view(actor.getName())), 34)
              << pad(std::to_string(actor.getQueued()), 8, true)
              << pad(std::to_string(actor.getInFlight()), 11, true)
              << pad(std::to_string(actor.getProcessed()), 11, true)
              << pad(std::to_string(actor.getFailed()), 8, true)
              << pad(std::to_string(actor.getRestarts()), 10, true)
              << pad(fixed(actor.getRate(), 1), 12, true)
              << pad(percent(busy_share(actor)), 9, true) << "\n";
  }
  if (!node.hasRun()) return;
  const auto run = node.getRun();
  std::cout << "  run: stage " << view(run.getStage()) << ", step " << run.getStep() << ", version "
            << run.getVersion() << ", lag " << fixed(run.getLag(), 2) << ", in flight "
            << run.getInFlight() << ", groups waiting " << run.getWaitingGroups() << " ready "
            << run.getReadyGroups() << " dropped " << run.getDroppedGroups() << "\n";
}

int status(const status_arguments& a) {
  const std::string address = find_address(a);
  auto& system = start_actor_system();
  const node_actor node = [&] {
    try {
      return connect(system, address, connect_limit);
    } catch (const std::runtime_error& e) {
      if (a.directory.empty()) throw;
      throw std::runtime_error(a.directory +
                               ": this run has ended, was killed, or does not answer: " + e.what());
    }
  }();
  std::vector<node_status_record> all;
  std::string problem;
  caf::scoped_actor self(system);
  self->request(node, answer_limit, status_atom_v)
      .receive([&](const std::vector<node_status_record>& nodes) { all = nodes; },
               [&](const caf::error& e) { problem = system.render(e); });
  if (!problem.empty()) throw std::runtime_error(address + ": no status (" + problem + ")");
  for (const auto& one : all) {
    if (a.json) {
      std::cout << one_line(to_json(*one)) << "\n";
    } else {
      print(*one);
    }
  }
  return 0;
}

// ---- hone node

struct node_arguments {
  std::string join;
  std::vector<std::string> devices;
  std::string name;
  std::int64_t compilers = 1;
  bool share_cores = false;
};

struct joined_run {
  node_wiring wiring;
  std::shared_ptr<const task_table> tasks;
};

joined_run join(caf::actor_system& system, const std::string& address, const std::string& name) {
  joined_run joined;
  joined.wiring.uplink = connect(system, address, connect_limit);
  record_builder<schema::JoinRequest> request;
  request->setSchemaVersion(schema_version);
  request->setJudgeVersion(judge_version);
  request->setNode(name);
  std::vector<task_record> known;
  std::string problem;
  caf::scoped_actor self(system);
  self->request(joined.wiring.uplink, answer_limit, join_atom_v, request.finish())
      .receive(
          [&](const compile_queue& compiles, const verify_queue& verifies,
              const benchmark_queue& benchmarks, const pool_actor& pool,
              const std::vector<task_record>& tasks) {
            joined.wiring.compiles = compiles;
            joined.wiring.verifies = verifies;
            joined.wiring.benchmarks = benchmarks;
            joined.wiring.pool = pool;
            known = tasks;
          },
          [&](const caf::error& e) { problem = system.render(e); });
  if (!problem.empty()) throw std::runtime_error(address + ": joining was refused: " + problem);
  auto table = std::make_shared<task_table>();
  for (const task_record& t : known) table->add(from_record(*t));
  joined.tasks = table;
  return joined;
}

int work_for(const node_arguments& a) {
  const std::string name = a.name.empty() ? "node " + std::to_string(getpid()) : a.name;
  (void)parse_address(a.join);  // refused before any core is reserved
  if (a.devices.empty())
    variant_compiler::require_cuda_toolchain();  // it takes whatever is to be compiled, so it must be able to: throws
                            // where it is not
  const auto devices = plan_devices(a.devices, a.share_cores, {}, name);  // before the first thread
  auto& system = start_actor_system();
  const joined_run joined = join(system, a.join, name);
  const auto log = [](const std::string& line) { std::cout << line << std::endl; };

  telemetry_options watch;
  watch.node = name;
  for (const planned_device& device : devices) watch.device_types.push_back(device.type);
  const auto watching = system.spawn(telemetry, watch, pool_actor(), joined.wiring.uplink);
  node_options own;
  own.name = name;
  own.devices = devices;
  own.compilers = static_cast<std::size_t>(a.compilers);
  own.log = log;
  caf::scoped_actor self(system);
  self->monitor(joined.wiring.uplink);
  const auto working = system.spawn(node, own, joined.wiring, joined.tasks, watching);
  self->monitor(working);
  log(name + " works for the run at " + a.join + " with " + std::to_string(devices.size()) +
      " devices and " + std::to_string(a.compilers) + " compilers, " +
      std::to_string(joined.tasks->all().size()) + " tasks known");
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

void add_node_commands(CLI::App& app, command_action& action) {
  auto asked = std::make_shared<status_arguments>();
  CLI::App* command = app.add_subcommand(
      "status", "Nodes, actors, queue depths, rates, lag and versions of a live run");
  auto* connects =
      command->add_option("--connect", asked->address, "HOST:PORT of one of its nodes");
  command
      ->add_option("--dir", asked->directory, "the run's directory, where its address is written")
      ->excludes(connects);
  command->add_flag("--json", asked->json, "one object a node");
  command->callback([asked, &action] {
    if (asked->address.empty() && asked->directory.empty())
      throw CLI::RequiredError("--connect HOST:PORT or --dir DIR");
    action = [asked] { return status(*asked); };
  });

  auto given = std::make_shared<node_arguments>();
  command = app.add_subcommand(
      "node", "Add workers to a live run, until it ends or this process is stopped");
  command->add_option("--join", given->join, "HOST:PORT of the run; loopback addresses only")
      ->required();
  command
      ->add_option(
          "--devices", given->devices,
          "cpu, cuda (all GPUs) or cuda:0,cuda:1, simulated:NAME; without, it compiles alone")
      ->delimiter(',');
  command->add_option("--name", given->name,
                      "what status calls it (default: node and the process's number)");
  command->add_option("--compilers", given->compilers, "compilers to run beside the devices")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  command->add_flag("--share-cores", given->share_cores,
                    "let devices share cores: their times mean nothing then");
  command->callback([given, &action] {
    if (given->devices.empty() && given->compilers == 0)
      throw CLI::ValidationError("--compilers", "a node without devices needs some");
    action = [given] { return work_for(*given); };
  });
}

}  // namespace hone
