#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/run/run_folder.hpp"
#include "launch/version.hpp"
#include "results/printing.hpp"
#include "results/report.hpp"
#include "storage/inspection.hpp"
#include "ui/report/html_report.hpp"

namespace hone {
namespace {

struct report_arguments {
  std::vector<std::string> directories;
  bool json = false;
  std::string html;
};

// Returns a sentence for a run that has not ended, or nothing.
std::string unfinished_text(const std::string& directory, const pool_inspector& pool) {
  if (is_live(directory)) return "This run is still going on; these are its results so far.";
  if (is_complete(pool)) return "";
  return "This run was stopped or killed before its end; these are its results so far.";
}

std::string text_if_exists(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? read_text(file.string()) : "";
}

int write_html(const report_arguments& a) {
  std::vector<reported_run> runs;
  for (const std::string& directory : a.directories) {
    const std::filesystem::path folder(directory);
    reported_run run{.name = std::filesystem::weakly_canonical(folder).filename().string(),
                     .state = "",
                     .pool = find_in_run(directory, "pool"),
                     .configuration = text_if_exists(folder / "config.toml"),
                     .finished_report = text_if_exists(folder / "report.json")};
    run.state = unfinished_text(directory, pool_inspector(run.pool));
    if (run.state.empty()) run.state = "This run is finished.";
    runs.push_back(std::move(run));
  }
  const build_versions build = versions_of_build();
  write_text(a.html, html_report(runs, "Hone " + build.version + ", revision " + build.revision));
  std::cout << "wrote " << a.html << ", " << std::filesystem::file_size(a.html) / 1024 << " KiB\n";
  return 0;
}

int report(const report_arguments& a) {
  if (!a.html.empty()) return write_html(a);
  if (a.directories.size() > 1)
    throw std::runtime_error("several runs are compared by --html FILE only");
  const std::string& directory = a.directories.front();
  const pool_inspector pool(find_in_run(directory, "pool"));
  const std::string state = unfinished_text(directory, pool);
  const bool runs = is_live(directory);
  run_report made = make_report(read_results(pool));
  if (a.json) {
    made.json["finished"] = is_complete(pool);
    made.json["live"] = runs;
    std::cout << one_line(made.json) << "\n";
    return 0;
  }
  if (!state.empty())
    std::cout << state << "\n"
              << (runs ? "" : "go on: " + command_to_go_on(directory, false) + "\n") << "\n";
  std::cout << made.text;
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, command_action& action) {
  auto arguments = std::make_shared<report_arguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Print the report of a run from its pool: finished, stopped, killed or live");
  command->add_option("directory", arguments->directories, "the run's directory, or several")
      ->required();
  CLI::Option* json = command->add_flag("--json", arguments->json, "print one JSON object");
  command
      ->add_option("--html", arguments->html,
                   "write one HTML file with curves and code, without scripts; compares several "
                   "runs")
      ->excludes(json);
  command->callback([arguments, &action] { action = [arguments] { return report(*arguments); }; });
}

}  // namespace hone
