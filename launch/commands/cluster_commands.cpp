#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "actors/error_text.hpp"
#include "evaluation/devices.hpp"
#include "launch/cluster/cluster.hpp"
#include "launch/commands/cluster_check.hpp"
#include "launch/commands/cluster_view.hpp"
#include "launch/commands/commands.hpp"
#include "launch/system.hpp"
#include "messages/parse_number.hpp"

namespace hone {
namespace {

constexpr auto answer_limit = std::chrono::seconds(10);
constexpr std::int64_t max_scaled = 1000000;

struct up_arguments {
  std::string file;
  bool dry_run = false;
  bool resume = false;
};

struct scale_arguments {
  std::string directory;
  std::string identity;
  std::string what;  // a pool of nodes, or a type of device
  std::int64_t count = 0;
};

// Returns the options of a cluster whose head and local nodes run this program.
cluster_options own_options() {
  cluster_options options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  return options;
}

// Returns the plan in a cluster file, or that of a cluster which goes on in a run's directory.
cluster_plan load_plan(const up_arguments& a) {
  if (!std::filesystem::is_directory(a.file)) return load_cluster(a.file);
  if (!a.resume)
    throw std::runtime_error(a.file + ": is a directory; with --resume, the cluster that was " +
                             "started in it goes on");
  return load_started(a.file);
}

// Throws if the nodes could not work for the run.
void require_fit(const cluster_plan& plan) {
  const cluster_misfits misfits = find_misfits(plan, load_configuration(plan.config, plan.head.set),
                                               !find_devices().gpus.empty());
  for (const std::string& note : misfits.notes) std::cerr << "hone: " << note << "\n";
  std::string all;
  for (const std::string& problem : misfits.problems) all += "\n" + problem;
  if (!all.empty())
    throw std::runtime_error("the cluster does not fit its run, " + plan.config.string() + ":" +
                             all);
}

int up(const up_arguments& a) {
  const cluster_plan plan = load_plan(a);
  require_configuration(plan);
  require_fit(plan);
  cluster_options options = own_options();
  options.resume = a.resume;
  if (a.dry_run) {
    std::cout << plan_cluster(plan, options);
    return 0;
  }
  start_cluster(plan, options);
  std::cout << "the cluster of " << plan.directory.string() << " is up; logs are in "
            << (plan.directory / "logs").string() << "\n";
  return print_cluster(plan.directory);
}

int down(const std::string& directory) {
  stop_cluster(directory, own_options());
  std::cout << "the cluster of " << directory << " is down\n";
  return 0;
}

bool has_pool(const std::string& directory, const std::string& name) {
  if (!is_cluster(directory)) return false;
  const std::vector<std::string> pools = pool_names(directory);
  return std::find(pools.begin(), pools.end(), name) != pools.end();
}

// Asks the run's head for so many devices of a type.
int scale_devices(const scale_arguments& a) {
  auto& system = start_actor_system();
  const node_actor head =
      connect(system, head_of_run(a.directory, a.identity), status_purpose, "hone scale");
  std::uint32_t at_work = 0;
  std::string problem;
  caf::scoped_actor self(system);
  self->request(head, answer_limit, scale_atom_v, a.what, static_cast<std::uint32_t>(a.count))
      .receive([&](std::uint32_t count) { at_work = count; },
               [&](const caf::error& e) { problem = text_of(system, e); });
  if (!problem.empty()) throw std::runtime_error(a.directory + ": " + problem);
  std::cout << at_work << " devices of type " << a.what << " at work";
  if (at_work < a.count) std::cout << "; the run's nodes have no more";
  std::cout << "\n";
  return at_work < a.count ? 1 : 0;
}

int scale(const scale_arguments& a) {
  if (!has_pool(a.directory, a.what)) return scale_devices(a);
  scale_pool(a.directory, a.what, a.count, own_options());
  return print_cluster(a.directory);
}

// Splits "POOL=N" or "TYPE=N".
void parse_scale(const std::string& text, scale_arguments& a) {
  const std::size_t equals = text.rfind('=');
  std::optional<std::int64_t> count;
  if (equals != std::string::npos && equals > 0)
    count = parse_number<std::int64_t>(std::string_view(text).substr(equals + 1));
  if (!count || *count < 0 || *count > max_scaled)
    throw CLI::ValidationError("CHANGE", "'" + text +
                                             "': expected POOL=N or TYPE=N, with N from 0 to " +
                                             std::to_string(max_scaled));
  a.what = text.substr(0, equals);
  a.count = *count;
}

void add_up(CLI::App& app, command_action& action) {
  auto given = std::make_shared<up_arguments>();
  CLI::App* command =
      app.add_subcommand("up", "Start a run and the nodes that join it, as a cluster file says");
  command
      ->add_option("file", given->file,
                   "a TOML file, such as configs/cluster/local.toml; with --resume, the run's "
                   "directory is enough")
      ->required();
  command->add_flag("--dry-run", given->dry_run,
                    "print the commands, scripts and manifests, but touch nothing");
  command->add_flag("--resume", given->resume, "continue the run that is in its directory");
  command->callback([given, &action] { action = [given] { return up(*given); }; });
}

void add_down(CLI::App& app, command_action& action) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("down", "Stop the nodes and the head of a run that `hone up` started");
  command->add_option("directory", *directory, "the run's directory")->required();
  command->callback([directory, &action] { action = [directory] { return down(*directory); }; });
}

void add_scale(CLI::App& app, command_action& action) {
  auto given = std::make_shared<scale_arguments>();
  auto change = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "scale",
      "Set how many nodes a pool of a live run has, or how many devices of a type are at work");
  command->add_option("directory", given->directory, "the run's directory")->required();
  command
      ->add_option("change", *change,
                   "POOL=N: the pool's name and its number of nodes; those that have ended are "
                   "started again. Or TYPE=N, such as h200=4: devices of all nodes together; those "
                   "that stop finish what they have")
      ->required();
  command->add_option("--identity", given->identity,
                      "folder of an identity of the run (default: the head's)");
  command->callback([given, change, &action] {
    parse_scale(*change, *given);
    action = [given] { return scale(*given); };
  });
}

}  // namespace

void add_cluster_commands(CLI::App& app, command_action& action) {
  add_up(app, action);
  add_down(app, action);
  add_scale(app, action);
}

}  // namespace hone
