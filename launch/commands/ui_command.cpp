#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include "launch/commands/commands.hpp"

namespace hone {
namespace {

// Becomes the program hone-ui, which lies in this program's folder.
int become_viewer(std::vector<std::string> words) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hone-ui";
  words.insert(words.begin(), program.string());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw std::runtime_error(program.string() + ": cannot be started: " + std::strerror(errno));
}

}  // namespace

void add_ui_command(CLI::App& app, command_action& action) {
  CLI::App* command = app.add_subcommand(
      "ui", "Show a run in a browser: curves, tasks, variants, their code and their lineage");
  command->prefix_command();
  command->set_help_flag();  // hone-ui explains its options
  command->callback([command, &action] {
    action = [words = command->remaining()] { return become_viewer(words); };
  });
}

}  // namespace hone
