#include "launch/commands/commands.hpp"
#include "launch/run/run.hpp"

namespace hone {
namespace {

struct run_arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string directory;
  bool resume = false;
  bool dry_run = false;
};

std::string quoted_for_shell(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-") ==
          std::string::npos)
    return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

void add_run_command(CLI::App& app, command_action& action) {
  auto arguments = std::make_shared<run_arguments>();
  CLI::App* command =
      app.add_subcommand("run", "Train a policy as a configuration file says, and write a report");
  command->add_option("config", arguments->config, "a TOML file, such as configs/quickstart.toml")
      ->required();
  command
      ->add_option("--set", arguments->overrides,
                   "section.key=value, which overrides the file; may be repeated")
      ->take_all();
  command->add_option("--dir", arguments->directory,
                      "the run's directory, which overrides the configuration's");
  command->add_flag("--resume", arguments->resume, "continue the run in that directory");
  command->add_flag("--dry-run", arguments->dry_run,
                    "check everything and print the resolved configuration, but start nothing");
  command->callback([arguments, &action] {
    action = [arguments] {
      run_options options;
      options.directory = arguments->directory;
      options.resume = arguments->resume;
      options.dry_run = arguments->dry_run;
      options.command = "hone run " + quoted_for_shell(arguments->config);
      for (const std::string& one : arguments->overrides)
        options.command += " --set " + quoted_for_shell(one);
      if (!arguments->directory.empty())
        options.command += " --dir " + quoted_for_shell(arguments->directory);
      if (arguments->resume) options.command += " --resume";
      return run(load_configuration(arguments->config, arguments->overrides), options);
    };
  });
}

}  // namespace hone
