#include <iostream>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/serve/serve.hpp"
#include "network/http/bearer_tokens.hpp"

namespace hone {
namespace {

struct serve_arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string directory;
  std::string client;
  bool waits = false;
};

int serve_as_told(const serve_arguments& a) {
  const std::string file = a.config.empty() ? (configs_folder() / "serve.toml").string() : a.config;
  const configuration c = load_configuration(file, a.overrides);
  if (a.client.empty()) return serve(c, {.directory = a.directory, .waits_for_cores = a.waits});
  if (c.serve.tokens.empty())
    throw std::runtime_error("serve.tokens is empty, so there is no file to add a client to");
  std::cout << add_client(c.serve.tokens, a.client) << "\n";
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& app, command_action& action) {
  auto arguments = std::make_shared<serve_arguments>();
  CLI::App* command = app.add_subcommand(
      "serve", "Judge programs for clients over HTTP, such as trainers of other systems");
  command->add_option("config", arguments->config,
                      "a TOML file; by default configs/serve.toml, which comes with the program");
  command
      ->add_option("--set", arguments->overrides,
                   "section.key=value, which overrides the file; may be repeated")
      ->take_all();
  command->add_option("--dir", arguments->directory,
                      "folder of the server, which overrides the configuration's; one that has "
                      "served before goes on where it was");
  command->add_option("--add-client", arguments->client,
                      "add a client to the file serve.tokens, print its token, and end");
  command->add_flag("--wait", arguments->waits,
                    "wait until other runs or commands release the GPUs and the processor cores "
                    "that devices need");
  command->callback(
      [arguments, &action] { action = [arguments] { return serve_as_told(*arguments); }; });
}

}  // namespace hone
