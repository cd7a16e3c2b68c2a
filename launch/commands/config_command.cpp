#include <iostream>

#include "launch/commands/commands.hpp"
#include "launch/configuration.hpp"

namespace hone {

void add_config_command(CLI::App& app, command_action& action) {
  auto is_markdown = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("config", "Print every configuration key with its default and meaning");
  command->add_flag("--markdown", *is_markdown, "print Markdown, the text of doc/configuration.md");
  command->callback([is_markdown, &action] {
    action = [is_markdown] {
      std::cout << (*is_markdown ? configuration_reference() : print_configuration({}, true));
      return 0;
    };
  });
}

}  // namespace hone
