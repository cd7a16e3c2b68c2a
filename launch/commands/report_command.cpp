#include <iostream>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"
#include "launch/run/report.hpp"

namespace hone {
namespace {

struct report_arguments {
  std::string directory;
  bool json = false;
};

int report(const report_arguments& a) {
  const run_report made = make_report(find_in_run(a.directory, "pool"), {}, 0, true);
  if (a.json) {
    std::cout << one_line(made.json) << "\n";
  } else {
    std::cout << made.text;
  }
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
