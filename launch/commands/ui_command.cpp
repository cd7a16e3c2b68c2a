#include <stdexcept>

#include "launch/commands/commands.hpp"

namespace hone {

// The command is listed here, and hone.cpp starts its program.
void add_ui_command(CLI::App& app, command_action& action) {
  CLI::App* command = app.add_subcommand(
      "ui", "Show a run in a browser: curves, tasks, variants, their code and their lineage");
  command->prefix_command();
  command->set_help_flag();
  command->callback([&action] {
    action = []() -> int { throw std::runtime_error("the pages' program is hone-ui"); };
  });
}

}  // namespace hone
