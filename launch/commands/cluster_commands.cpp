#include <charconv>
#include <filesystem>
#include <iostream>

#include "launch/cluster/cluster.hpp"
#include "launch/commands/commands.hpp"

namespace hone {
namespace {

struct up_arguments {
  std::string file;
  bool dry_run = false;
  bool resume = false;
};

struct scale_arguments {
  std::string directory;
  std::string pool;
  std::int64_t count = 0;
};

// Returns the options of a cluster whose head and local nodes run this program.
cluster_options own_options() {
  cluster_options options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  return options;
}

void print_node(const launched_node& node) {
  std::cout << "  " << node.name << ": " << name_of(node.phase) << (node.where.empty() ? "" : ", ")
            << node.where << "\n";
  if (node.detail.empty() || node.phase == node_phase::running) return;
  std::string indented = "      ";
  for (const char c : node.detail)
    indented += c == '\n' ? std::string("\n      ") : std::string(1, c);
  std::cout << indented << "\n";
}

// Prints the head and the nodes. Returns 1 if one of them has ended or cannot be listed, else 0.
int print_cluster(const std::filesystem::path& run) {
  const cluster_state state = list_cluster(run);
  bool is_well = state.head.phase == node_phase::running;
  print_node(state.head);
  for (const pool_state& pool : state.pools) {
    if (!pool.problem.empty()) std::cout << "  pool " << pool.name << ": " << pool.problem << "\n";
    is_well = is_well && pool.problem.empty();
    for (const launched_node& node : pool.nodes) {
      print_node(node);
      is_well = is_well && node.phase != node_phase::ended;
    }
  }
  return is_well ? 0 : 1;
}

int up(const up_arguments& a) {
  const cluster_plan plan = load_cluster(a.file);
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

int scale(const scale_arguments& a) {
  scale_pool(a.directory, a.pool, a.count, own_options());
  return print_cluster(a.directory);
}

// Splits "POOL=N".
void parse_scale(const std::string& text, scale_arguments& a) {
  const std::size_t equals = text.rfind('=');
  const char* const end = text.data() + text.size();
  const bool is_well = equals != std::string::npos && equals > 0 && equals + 1 < text.size() &&
                       std::from_chars(text.data() + equals + 1, end, a.count).ptr == end &&
                       a.count >= 0;
  if (!is_well) throw CLI::ValidationError("POOL=N", "'" + text + "': expected POOL=N");
  a.pool = text.substr(0, equals);
}

void add_up(CLI::App& app, command_action& action) {
  auto given = std::make_shared<up_arguments>();
  CLI::App* command =
      app.add_subcommand("up", "Start a run and the nodes that join it, as a cluster file says");
  command->add_option("file", given->file, "a TOML file, such as configs/cluster/local.toml")
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
      "scale", "Set how many nodes a pool of a run has; nodes that have ended are started again");
  command->add_option("directory", given->directory, "the run's directory")->required();
  command->add_option("change", *change, "POOL=N: the pool's name and its number of nodes")
      ->required();
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
