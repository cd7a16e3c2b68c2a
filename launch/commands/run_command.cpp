#include <string_view>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/run/run.hpp"
#include "messages/parse_number.hpp"

namespace hone {
namespace {

struct run_arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string directory;
  bool resume = false;
  std::string extend;
  bool dry_run = false;
  bool wait = false;
};

constexpr const char* extensible_key = "contrastive.steps=";

// Returns the number of steps in "contrastive.steps=N".
std::int64_t parse_extension(const std::string& text) {
  const std::string number =
      text.starts_with(extensible_key) ? text.substr(std::string_view(extensible_key).size()) : "";
  const auto steps = parse_number<std::int64_t>(number);
  if (!steps || *steps < 1)
    throw CLI::ValidationError("--extend", "'" + text + "': expected " + extensible_key + "N");
  return *steps;
}

// Returns the configuration that the command names, or the one that its run keeps.
std::string configuration_file(const run_arguments& a) {
  return a.config.empty() ? find_in_run(a.directory, "config.toml").string() : a.config;
}

}  // namespace

void add_run_command(CLI::App& app, command_action& action) {
  auto arguments = std::make_shared<run_arguments>();
  CLI::App* command =
      app.add_subcommand("run", "Train a policy as a configuration file says, and write a report");
  command->add_option(
      "config", arguments->config,
      "a TOML file, such as configs/quickstart.toml; with --resume, the default is the one "
      "that the run's directory keeps");
  command
      ->add_option("--set", arguments->overrides,
                   "section.key=value, which overrides the file; may be repeated")
      ->take_all();
  command->add_option("--dir", arguments->directory,
                      "the run's directory, which overrides the configuration's");
  command->add_flag("--resume", arguments->resume, "continue the run in that directory");
  command->add_option("--extend", arguments->extend,
                      "contrastive.steps=N: continue the run in that directory, also a finished "
                      "one, by N more steps");
  command->add_flag("--dry-run", arguments->dry_run,
                    "check everything and print the resolved configuration, but start nothing");
  command->add_flag(
      "--wait", arguments->wait,
      "wait until other runs or commands release the GPUs and the processor cores that "
      "devices need");
  command->callback([arguments, &action] {
    const std::int64_t more = arguments->extend.empty() ? 0 : parse_extension(arguments->extend);
    const bool resumes = arguments->resume || more > 0;
    if (arguments->config.empty() && (!resumes || arguments->directory.empty()))
      throw CLI::RequiredError("a configuration, or --resume with --dir");
    action = [arguments, more, resumes] {
      run_options options;
      options.directory = arguments->directory;
      options.resume = resumes;
      options.more_contrastive_steps = more;
      options.dry_run = arguments->dry_run;
      options.waits_for_cores = arguments->wait;
      return run(load_configuration(configuration_file(*arguments), arguments->overrides), options);
    };
  });
}

}  // namespace hone
