#include <filesystem>
#include <iostream>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"
#include "launch/run/report.hpp"
#include "launch/run/run_folder.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

struct report_arguments {
  std::string directory;
  bool json = false;
};

int report(const report_arguments& a) {
  const std::filesystem::path pool = find_in_run(a.directory, "pool");
  const version_chain versions = pool_inspector(pool).versions();
  const version_record* head = versions.head_version();
  const bool is_finished = head && (*head)->getComplete();
  const bool runs = is_live(a.directory);
  run_report made = make_report(pool, {}, 0, true);
  if (a.json) {
    made.json["finished"] = is_finished;
    made.json["live"] = runs;
    std::cout << one_line(made.json) << "\n";
    return 0;
  }
  if (runs) {
    std::cout << "This run is still going on; these are its results so far.\n\n";
  } else if (!is_finished) {
    std::cout << "This run was stopped or killed before its end; these are its results so far.\n"
              << "go on: " << command_to_go_on(a.directory, false) << "\n\n";
  }
  std::cout << made.text;
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, command_action& action) {
  auto arguments = std::make_shared<report_arguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Print the report of a run from its pool: finished, stopped, killed or live");
  command->add_option("directory", arguments->directory, "the run's directory")->required();
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments, &action] { action = [arguments] { return report(*arguments); }; });
}

}  // namespace hone
