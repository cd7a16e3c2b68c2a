#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "actors/error_text.hpp"
#include "launch/cluster/cluster.hpp"
#include "launch/commands/cluster_view.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/status_summary.hpp"
#include "launch/files.hpp"
#include "launch/run/run_folder.hpp"
#include "launch/system.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/run_results.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr auto answer_limit = std::chrono::seconds(10);

struct status_arguments {
  std::string address;
  std::string identity;
  std::string directory;
  bool json = false;
  bool all = false;
};

// Of more nodes, the actors are shown only if asked for.
constexpr std::size_t few_nodes = 8;

head_address find_head(const status_arguments& a) {
  if (!a.address.empty()) return {a.address, a.identity};
  return head_of_run(a.directory, a.identity);
}

std::map<std::string, double> named_numbers(
    const capnp::List<schema::NamedNumber>::Reader& numbers) {
  std::map<std::string, double> all;
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
                      {"device_type", view(actor.getDeviceType())},
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
                {"dropped_by_type", named_numbers(run.getDroppedByType())},
                {"lag", run.getLag()},
                {"outcomes", named_numbers(run.getOutcomes())},
                {"complete", run.getComplete()},
                {"tasks", tasks}};
  return all;
}

void print_samples(const std::map<std::string, double>& outcomes) {
  double samples = 0;
  for (const auto& [outcome, count] : outcomes) samples += count;
  if (samples == 0) return;
  std::cout << "  " << fixed(samples, 0) << " samples in this stage: " << shares_text(outcomes)
            << "\n";
}

void print(const schema::NodeStatus::Reader& node) {
  std::size_t width = 34;
  for (const auto actor : node.getActors()) width = std::max(width, actor.getName().size() + 3);
  std::cout << view(node.getNode()) << "  schema " << node.getSchemaVersion() << ", judge "
            << node.getJudgeVersion() << ", devices";
  for (const auto type : node.getDeviceTypes()) std::cout << " " << view(type.getName());
  std::cout << "\n"
            << pad("  actor", width) << pad("queued", 8, true) << pad("in flight", 11, true)
            << pad("processed", 11, true) << pad("failed", 8, true) << pad("restarts", 10, true)
            << pad("per second", 12, true) << pad("busy", 9, true) << "\n";
  for (const auto actor : node.getActors()) {
    std::cout << pad("  " + std::string(view(actor.getName())), width)
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
  if (run.getStage().size() == 0) {  // of a server, which trains nothing
    std::cout << "  groups waiting " << run.getWaitingGroups() << "\n";
    print_samples(named_numbers(run.getOutcomes()));
    return;
  }
  std::cout << "  run: stage " << view(run.getStage()) << ", step " << run.getStep() << ", version "
            << run.getVersion() << ", lag " << fixed(run.getLag(), 2) << ", in flight "
            << run.getInFlight() << ", groups waiting " << run.getWaitingGroups() << " ready "
            << run.getReadyGroups() << " dropped " << run.getDroppedGroups();
  if (run.getDroppedByType().size() > 1) {
    for (const auto& [type, count] : named_numbers(run.getDroppedByType()))
      std::cout << ", " << fixed(count, 0) << " on " << type;
  }
  std::cout << "\n";
  print_samples(named_numbers(run.getOutcomes()));
}

std::string place_in_stage(std::uint32_t step) {
  return step == 0 ? ", before its first step" : " after step " + std::to_string(step);
}

// Shows what the directory of a run tells that no process runs.
int print_resting_run(const status_arguments& a) {
  const std::filesystem::path pool = find_in_run(a.directory, "pool");
  const version_chain versions = pool_inspector(pool).versions();
  const run_results found = read_results(pool);
  const version_record* head = versions.head_version();
  const bool is_finished = head && (*head)->getComplete();
  const std::string stage = head ? std::string(name_of((*head)->getStage())) : "none";
  const std::string next = command_to_go_on(a.directory, is_finished);
  ordered_json best = ordered_json::array();
  std::string rows;
  for (const auto& [where, row] : found.tasks) {
    best.push_back({{"task", found.names.at(where.task)},
                    {"device_type", where.device_type},
                    {"ok", row.ok},
                    {"best", row.best ? ordered_json(row.best->getScore()) : nullptr}});
    rows += "  " + pad(found.name_of(where) + " ", 26) +
            (row.best ? fixed(row.best->getScore(), 2) + "x" : "-") + "  of " +
            std::to_string(row.ok) + " ok variants\n";
  }
  // The report calls the samples of the sft stage by their origin.
  const auto stage_row = found.stages.find(stage == "sft" ? "corpus" : stage);
  const auto outcomes = stage_row == found.stages.end() ? std::map<std::string, double>()
                                                        : stage_row->second.outcomes;
  if (a.json) {
    const ordered_json step = head ? ordered_json((*head)->getStep()) : nullptr;
    std::cout << one_line(ordered_json{{"live", false},
                                       {"finished", is_finished},
                                       {"stage", stage},
                                       {"step", step},
                                       {"outcomes", outcomes},
                                       {"tasks", best},
                                       {"go_on", next}})
              << "\n";
    return 0;
  }
  std::cout << a.directory << ": "
            << (is_finished ? "this run has finished" : "this run was stopped or killed")
            << (is_finished ? ""
                : head      ? ", in stage " + stage + place_in_stage((*head)->getStep())
                            : ", before its first version")
            << (head ? ", version " + std::to_string((*head)->getVersion()) : "") << "\n";
  print_samples(outcomes);
  std::cout << rows << "go on: " << next << "\nresults: hone report " << a.directory << "\n";
  return 0;
}

// Prints the nodes of the cluster that the run belongs to, if there is one: those that could not be
// started have not joined it.
void print_launched(const status_arguments& a) {
  if (a.directory.empty() || a.json || !is_cluster(a.directory)) return;
  std::cout << "started by hone up\n";
  (void)print_cluster(a.directory);
}

void print_live(const status_arguments& a, const std::vector<node_status_record>& nodes) {
  if (nodes.size() <= few_nodes || a.all) {
    for (const auto& node : nodes) print(*node);
  } else {
    for (const auto& node : nodes) {
      if (node->hasRun()) print(*node);
    }
    print_nodes(nodes);
    std::cout << "--all shows the actors of all nodes\n";
  }
  const bool has_pools = !a.directory.empty() && is_cluster(a.directory);
  if (nodes.size() > 1)
    print_summary(nodes, has_pools ? pool_names(a.directory) : std::vector<std::string>());
}

int status(const status_arguments& a) {
  const head_address head = find_head(a);
  auto& system = start_actor_system();
  node_actor node;
  try {
    node = connect(system, head, status_purpose, "hone status");
  } catch (const std::runtime_error& e) {
    if (a.directory.empty()) throw;
    if (!is_live(a.directory)) {
      const int code = print_resting_run(a);
      print_launched(a);
      return code;
    }
    throw std::runtime_error(a.directory + ": this run is live, but does not answer: " + e.what());
  }
  std::vector<node_status_record> all;
  std::string problem;
  caf::scoped_actor self(system);
  self->request(node, answer_limit, status_atom_v)
      .receive([&](const std::vector<node_status_record>& nodes) { all = nodes; },
               [&](const caf::error& e) { problem = text_of(system, e); });
  if (!problem.empty())
    throw std::runtime_error(head.address + ": the node sent no status (" + problem + ")");
  if (a.json) {
    for (const auto& one : all) std::cout << one_line(to_json(*one)) << "\n";
  } else {
    print_live(a, all);
  }
  print_launched(a);
  return 0;
}

}  // namespace

void add_status_command(CLI::App& app, command_action& action) {
  auto asked = std::make_shared<status_arguments>();
  CLI::App* command = app.add_subcommand("status",
                                         "Show nodes, actors, queue lengths, rates, lag and "
                                         "versions of a live run, or where a run that "
                                         "does not run has got to");
  auto* connects =
      command->add_option("--connect", asked->address, "HOST:PORT of one of the run's nodes");
  command
      ->add_option("--dir", asked->directory, "the run's directory, whose file `address` is read")
      ->excludes(connects);
  command->add_option("--identity", asked->identity,
                      "folder of an identity of the run (default: the head's, with --dir)");
  command->add_flag("--json", asked->json, "print one JSON object per node");
  command->add_flag("--all", asked->all,
                    "show the actors of all nodes, also if these are more than eight");
  command->callback([asked, &action] {
    if (asked->address.empty() && asked->directory.empty())
      throw CLI::RequiredError("--connect HOST:PORT or --dir DIR");
    action = [asked] { return status(*asked); };
  });
}

}  // namespace hone
