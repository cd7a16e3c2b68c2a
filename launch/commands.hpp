#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace hone {

// Each adds its subcommands to the command line; what a chosen one is to do is left in `action`,
// which gives the exit code. Actions throw format_error, policy_error, pool_error and other
// std::runtime_error with messages that can be shown as they are.
using command_action = std::function<int()>;
void add_run_command(CLI::App& app, command_action& action);
void add_eval_command(CLI::App& app, command_action& action);
void add_task_commands(CLI::App& app, command_action& action);
void add_import_command(CLI::App& tasks, command_action& action);  // `task import`, below `task`
void add_corpus_commands(CLI::App& app, command_action& action);
void add_node_commands(CLI::App& app, command_action& action);
void add_devices_command(CLI::App& app, command_action& action);
void add_pool_commands(CLI::App& app, command_action& action);

}  // namespace hone
